//! Every fault of an archetype in TOML, with its line, its key and its hint.

use super::tests::{least, read};
use crate::manifest::error::misfit;

/// Line, key, and what message and hint hold.
type Fault = (u32, &'static str, &'static str, &'static str);

#[test]
fn each_fault_names_its_line_its_key_and_what_would_be_right() {
    let tool = |grant: &str| least(&format!("[[tools]]\nplugin = \"files\"\n[tools.grant]\n{grant}"));
    let cases: Vec<(String, Fault)> = vec![
        (
            "description = \"d\"\ninstruction = \"i\"".into(),
            (1, "name", "`name` is missing", "needs"),
        ),
        (
            "name = \"a\"\ninstruction = \"i\"".into(),
            (1, "description", "missing", "needs"),
        ),
        (
            "name = \"a\"\ndescription = \"d\"".into(),
            (1, "instruction", "missing", "needs"),
        ),
        (
            "name = \"a\"\ndescription = \" \"\ninstruction = \"i\"".into(),
            (2, "description", "blank", ""),
        ),
        (
            "name = \"a\"\ndescription = \"d\"\ninstruction = \"\\n\"".into(),
            (3, "instruction", "blank", ""),
        ),
        (
            "name = \"9a\"\ndescription = \"d\"\ninstruction = \"i\"".into(),
            (1, "name", "`9a` is not", "a letter"),
        ),
        (
            "name = \"ä\"\ndescription = \"d\"\ninstruction = \"i\"".into(),
            (1, "name", "`ä` is not", "a letter"),
        ),
        (
            "name = 3\ndescription = \"d\"\ninstruction = \"i\"".into(),
            (1, "name", "a text, not an integer", ""),
        ),
        (
            least("max_turn = 3"),
            (4, "max_turn", "unknown key `max_turn`", "`max_turns`"),
        ),
        (
            least("allowed-tools = []"),
            (4, "allowed-tools", "unknown key", "`tools`"),
        ),
        (
            least("disallowedTools = []"),
            (4, "disallowedTools", "unknown key", "[[tools]]"),
        ),
        (least("zzz = 3"), (4, "zzz", "unknown key", "the keys are")),
        (
            least("skip_summarization = true"),
            (4, "skip_summarization", "unknown key", "[spawn]"),
        ),
        (
            least("temperature = 1"),
            (4, "temperature", "unknown key", "[generation]"),
        ),
        (
            least("max_turns = 0"),
            (4, "max_turns", "cannot be `0`", "1 or more, or -1"),
        ),
        (
            least("max_turns = -2"),
            (4, "max_turns", "cannot be `-2`", "-1 for no limit"),
        ),
        (
            least("max_turns = \"3\""),
            (4, "max_turns", "an integer, not a text", ""),
        ),
        (
            least("max_turns = 99999999999"),
            (4, "max_turns", "cannot be", "a smaller number"),
        ),
        (
            least("max_tool_calls_per_turn = 0"),
            (4, "max_tool_calls_per_turn", "cannot be `0`", "-1"),
        ),
        (
            least("keep_tool_results = -3"),
            (4, "keep_tool_results", "cannot be `-3`", "-1"),
        ),
        (
            least("parallel_tool_calls = 1"),
            (4, "parallel_tool_calls", "`true` or `false`", ""),
        ),
        (
            least("summary = \"allways\""),
            (4, "summary", "cannot be `allways`", "`always`"),
        ),
        (least("model = \"a b\""), (4, "model", "not a model", "fief.toml")),
        (
            least("agents = [\"main\"]"),
            (4, "agents[0]", "`main` cannot be spawned", ""),
        ),
        (
            least("agents = [\n  \"x\",\n  \"MAIN\",\n]"),
            (6, "agents[1]", "cannot be spawned", ""),
        ),
        (least("agents = [\"*\", \"x\"]"), (4, "agents", "`*` stands alone", "")),
        (least("agents = [\"x\", \"X\"]"), (4, "agents[1]", "twice", "")),
        (least("agents = \"x\""), (4, "agents", "a list, not a text", "")),
        (least("agents = [3]"), (4, "agents[0]", "a text, not an integer", "")),
        (
            least("agent_tools = [\"worker\"]"),
            (4, "agent_tools[0]", "cannot be served", "`agent-`"),
        ),
        (
            least("agent_tools = [\"Agent-x\"]"),
            (4, "agent_tools[0]", "cannot be served", "`agent-`"),
        ),
        (
            least("tools = [\"files\"]"),
            (4, "tools[0]", "without a grant", "plugin = \"files\""),
        ),
        (least("tools = \"files\""), (4, "tools", "a list, not a text", "")),
        (
            least("[[tools]]\nallow = []"),
            (4, "tools[0].plugin", "missing", "plugin"),
        ),
        (
            least("[[tools]]\nplugin = \"agent-x\""),
            (5, "tools[0].plugin", "not a plugin name", "reserved"),
        ),
        (
            least("[[tools]]\nplugin = \"fief\""),
            (5, "tools[0].plugin", "not a plugin name", "reserved"),
        ),
        (
            least("[[tools]]\nplugin = \"x\"\ndigest = \"sha256:12\""),
            (6, "tools[0].digest", "not a digest", "64"),
        ),
        (
            least("[[tools]]\nplugin = \"x\"\nallow = [\"*\"]"),
            (6, "tools[0].allow[0]", "pattern", "leave `allow` out"),
        ),
        (
            least("[[tools]]\nplugin = \"x\"\nallow = [\"agent-a\"]"),
            (6, "tools[0].allow[0]", "not a tool name", ""),
        ),
        (
            least("[[tools]]\nplugin = \"x\"\nallow = [\"a\", \"a\"]"),
            (6, "tools[0].allow[1]", "twice", ""),
        ),
        (
            least("[[tools]]\nplugin = \"x\"\nhttp = []"),
            (6, "tools[0].http", "unknown key", "under `grant`"),
        ),
        (
            least("[[tools]]\nplugin = \"x\"\ngrant = \"all\""),
            (6, "tools[0].grant", "cannot be `all`", "policy"),
        ),
        (
            least("[[tools]]\nplugin = \"x\"\n[[tools]]\nplugin = \"x\"\ngrant = \"policy\""),
            (6, "tools[1]", "twice", "one entry"),
        ),
        (
            least("filters = [{ plugin = \"x\", allow = [] }]"),
            (4, "filters[0].allow", "unknown key", "filter"),
        ),
        (
            tool("network = []"),
            (7, "tools[0].grant.network", "unknown key", "`http`"),
        ),
        (tool("sockets = true"), (7, "tools[0].grant.sockets", "unknown key", "")),
        (
            tool("http = [\"ftp://x\"]"),
            (7, "tools[0].grant.http[0]", "not an origin", "scheme"),
        ),
        (
            tool("http = [\"https://x/path\"]"),
            (7, "tools[0].grant.http[0]", "not an origin", "path"),
        ),
        (
            tool("http = [{ private = true }]"),
            (7, "tools[0].grant.http[0].origin", "missing", ""),
        ),
        (
            tool("http = [1]"),
            (7, "tools[0].grant.http[0]", "an origin, not an integer", "https://"),
        ),
        (
            tool("files = [\".\"]"),
            (7, "tools[0].grant.files[0]", "a table, not a text", "guest"),
        ),
        (
            tool("files = [{ host = \".\", mode = \"read\" }]"),
            (7, "tools[0].grant.files[0].guest", "missing", "/work"),
        ),
        (
            tool("files = [{ host = \".\", guest = \"work\", mode = \"read\" }]"),
            (
                7,
                "tools[0].grant.files[0].guest",
                "not a path of the guest",
                "absolute",
            ),
        ),
        (
            tool("files = [{ host = \".\", guest = \"/work/../etc\", mode = \"read\" }]"),
            (7, "tools[0].grant.files[0].guest", "not a path of the guest", "`..`"),
        ),
        (
            tool("files = [{ host = \".\", guest = \"/work\", mode = \"rw\" }]"),
            (7, "tools[0].grant.files[0].mode", "cannot be `rw`", "`read`, `write`"),
        ),
        (
            tool(
                "files = [\n{ host = \".\", guest = \"/w\", mode = \"read\" },\n{ host = \"x\", guest = \"/w/\", mode = \"read\" }]",
            ),
            (9, "tools[0].grant.files[1]", "taken", "of its own"),
        ),
        (
            tool("env = { \"A=B\" = \"x\" }"),
            (7, "tools[0].grant.env.A=B", "not the name", "digit"),
        ),
        (tool("env = { A = 1 }"), (7, "tools[0].grant.env.A", "a text", "")),
        (
            tool("secrets = [{ name = \"A\" }]"),
            (7, "tools[0].grant.secrets[0].for", "missing", ""),
        ),
        (
            tool("secrets = [{ name = \"A\", for = \"https://x\", value = \"v\" }]"),
            (
                7,
                "tools[0].grant.secrets[0].value",
                "unknown key",
                "never holds a secret",
            ),
        ),
        (
            tool("secrets = [{ name = \"A\", for = \"https://x\", header = \"a b\" }]"),
            (7, "tools[0].grant.secrets[0].header", "not a header", "authorization"),
        ),
        (
            tool("secrets = [{ name = \"A\", for = \"https://x\", format = \"Bearer\" }]"),
            (7, "tools[0].grant.secrets[0].format", "not a format", "{}"),
        ),
        (
            tool("limits = { memory = \"64M\" }"),
            (7, "tools[0].grant.limits.memory", "cannot be `64M`", "MiB"),
        ),
        (
            tool("limits = { memory = 1 }"),
            (7, "tools[0].grant.limits.memory", "cannot be `1`", "65536"),
        ),
        (
            tool("limits = { memory = -1 }"),
            (7, "tools[0].grant.limits.memory", "cannot be `-1`", "not negative"),
        ),
        (
            tool("limits = { wall = 30 }"),
            (7, "tools[0].grant.limits.wall", "such as \"30s\", not an integer", ""),
        ),
        (
            tool("limits = { wall = \"0s\" }"),
            (7, "tools[0].grant.limits.wall", "cannot be `0s`", "default"),
        ),
        (
            tool("limits = { timeout = \"1s\" }"),
            (7, "tools[0].grant.limits.timeout", "unknown key", "`wall`"),
        ),
        (
            least("[generation]\ntemperature = nan"),
            (5, "generation.temperature", "finite", ""),
        ),
        (
            least("[generation]\ntop_p = 1.5"),
            (5, "generation.top_p", "cannot be `1.5`", "from 0 to 1"),
        ),
        (
            least("[generation]\nmax_tokens = 5"),
            (5, "generation.max_tokens", "unknown key", "max_output_tokens"),
        ),
        (
            least("[budget]\nwall = \"10 minutes\""),
            (5, "budget.wall", "cannot be", "10m"),
        ),
        (
            least("[budget]\ntokens = 0"),
            (5, "budget.tokens", "cannot be `0`", "1 or more"),
        ),
        (
            least("[budget]\nchildren = 99999999999"),
            (5, "budget.children", "cannot be", "smaller"),
        ),
        (
            least("[budget]\ndepth = 1"),
            (5, "budget.depth", "unknown key `depth` in `budget`", ""),
        ),
        (
            least("[dynamic]\nname = \"agent-x\""),
            (5, "dynamic.name", "reserved", ""),
        ),
        (
            least("[dynamic]\nname = \"a.b\""),
            (5, "dynamic.name", "not a tool name", ""),
        ),
        (
            least("[dynamic]\ninstruction = \"x\""),
            (5, "dynamic.instruction", "unknown key", "fallback_instruction"),
        ),
        (
            least("[[dynamic.tools]]\nplugin = \"X\""),
            (5, "dynamic.tools[0].plugin", "not a plugin name", ""),
        ),
        (least("[spawn]\nskip = true"), (5, "spawn.skip", "unknown key", "")),
        (least("dynamic = true"), (4, "dynamic", "a table, not a boolean", "")),
        (
            least("input_schema = \"none.json\""),
            (4, "input_schema", "cannot be read", "relative"),
        ),
        (
            least("input_schema = \"report.json\""),
            (4, "input_schema", "does not describe an object", "object"),
        ),
        (
            least("report_schema = \"wrong.json\""),
            (4, "report_schema", "not a JSON Schema", ""),
        ),
        (
            least("report_schema = \"../x.json\""),
            (4, "report_schema", "leads out", "relative"),
        ),
        (least("version = 2026-12-01"), (4, "version", "a text, not a date", "")),
    ];
    let misfits: Vec<String> = cases
        .iter()
        .filter_map(|(text, fault)| misfit(text, &read(text), *fault))
        .collect();
    assert!(misfits.is_empty(), "{}", misfits.join("\n\n"));
}

#![allow(clippy::unwrap_used)]

use fief_core::event::{Event, EventKind};
use fief_core::message::{
    Answer, Arguments, Assistant, Content, Finish, Message, ModelIdentity, Request, Served, ToolCall, Usage,
};
use fief_core::port::{ModelError, ModelErrorKind};
use fief_core::report::Status;
use fief_core::tool::OutcomeKind;
use serde_json::{Value, json};

use super::span::{Kind, Span};
use super::*;

/// Tells a tree what happens, a microsecond apart.
struct Teller {
    tree: Tree,
    at: u64,
    ended: Vec<Span>,
}

impl Teller {
    fn new(content: bool) -> Self {
        let redact = Arc::new(Redactor::new(&["hunter2-hunter2".into()]));
        Self {
            tree: Tree::new("run-1", content.then(|| Author::new(redact))),
            at: 1_000_000_000,
            ended: Vec::new(),
        }
    }

    fn tell(&mut self, session: &str, note: &Note<'_>) {
        self.at += 1_000;
        let ended = self.tree.take(&session.parse().unwrap(), self.at, note);
        self.ended.extend(ended);
    }

    fn event(&mut self, session: &str, kind: EventKind) {
        let event = Event {
            kind,
            run: "run-1".into(),
            session: session.parse().unwrap(),
            parent: (session != "main").then(SessionId::main),
            depth: u32::from(session != "main"),
            seq: 0,
            time: String::new(),
            forwarded: None,
        };
        self.tell(session, &Note::Event(&event));
    }

    fn begin(&mut self) {
        self.tell("main", &Note::Agent(&profile()));
        self.event("main", run_started());
    }

    fn ask(&mut self, session: &str, answer: Result<Answer, ModelErrorKind>) {
        self.tell(session, &Note::Asked(&request(session)));
        match answer {
            Ok(answer) => self.tell(session, &Note::Answered(&answer)),
            Err(kind) => {
                let message = "the server said: hunter2-hunter2".into();
                self.tell(session, &Note::Failed(&ModelError { kind, message }));
            }
        }
    }

    fn call(&mut self, session: &str, call: &str, tool: &str) {
        let (plugin, arguments) = (
            tool.split_once('.').map(|(plugin, _)| plugin.to_owned()),
            json!({ "path": "a.txt" }),
        );
        self.event(
            session,
            EventKind::ToolStarted {
                call: call.into(),
                plugin,
                tool: tool.into(),
                arguments: arguments.into(),
            },
        );
    }

    fn called(&mut self, session: &str, call: &str, tool: &str, outcome: OutcomeKind) {
        let plugin = tool.split_once('.').map(|(plugin, _)| plugin.to_owned());
        let (content, error) = ("what it says".into(), None);
        self.event(
            session,
            EventKind::ToolFinished {
                call: call.into(),
                plugin,
                tool: tool.into(),
                outcome,
                content,
                error,
                ms: 2,
            },
        );
    }

    fn finish(&mut self, status: Status) {
        let (report, usage) = ("the report".into(), usage());
        self.event(
            "main",
            EventKind::RunFinished {
                status,
                report,
                usage,
                own_usage: usage,
            },
        );
    }

    fn span(&self, name: &str) -> &Span {
        let found: Vec<_> = self.ended.iter().filter(|span| span.name == name).collect();
        assert_eq!(
            found.len(),
            1,
            "{name} among {:?}",
            self.ended.iter().map(|span| &span.name).collect::<Vec<_>>()
        );
        found[0]
    }
}

fn value<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
    let mut found = span
        .attributes
        .0
        .iter()
        .filter(|(known, _)| *known == key)
        .map(|(_, value)| value);
    let first = found.next();
    assert!(found.next().is_none(), "{key} stands twice");
    first
}

fn run_started() -> EventKind {
    EventKind::RunStarted {
        task: "find it, hunter2-hunter2".into(),
        archetype: "main".into(),
        model: "local".into(),
        tools: Vec::new(),
    }
}

fn usage() -> Usage {
    Usage {
        input_tokens: 10,
        output_tokens: 2,
        cached_tokens: 4,
        ..Usage::default()
    }
}

fn profile() -> Profile {
    Profile {
        description: Some("Does it.".into()),
        model: Arc::new(ModelIdentity {
            provider: "openai".into(),
            model: "gpt-5".into(),
            address: Some("api.openai.com".into()),
            port: Some(443),
            ..ModelIdentity::default()
        }),
        system: "be good, hunter2-hunter2".into(),
        declarations: Arc::new([]),
    }
}

fn request(session: &str) -> Request {
    Request {
        session: session.parse().unwrap(),
        system: "be good".into(),
        history: Arc::new(vec![Message::User {
            content: vec![Content::Text("the key is hunter2-hunter2".into())],
        }]),
        tools: Arc::new([]),
        generation: fief_core::manifest::archetype::Generation {
            temperature: Some(0.5),
            stop: Some(vec!["END".into()]),
            ..Default::default()
        },
        parallel_tool_calls: None,
    }
}

fn answer(text: &str) -> Answer {
    Answer {
        message: Assistant {
            text: text.into(),
            calls: vec![ToolCall {
                id: "c1".into(),
                name: "files.read".into(),
                arguments: Arguments::Object(json!({ "path": "hunter2-hunter2" }).as_object().unwrap().clone()),
            }],
            ..Assistant::default()
        },
        finish: Finish::ToolCalls,
        usage: usage(),
        served: Served {
            by: None,
            model: Some("gpt-5-2026".into()),
            id: Some("resp-1".into()),
        },
    }
}

#[test]
fn spans_have_the_names_kinds_and_attributes_of_the_conventions() {
    let mut teller = Teller::new(false);
    teller.begin();
    teller.ask("main", Ok(answer("looking")));
    teller.call("main", "c1", "files.read");
    teller.called("main", "c1", "files.read", OutcomeKind::Ok);
    teller.finish(Status::Done);

    let (agent, chat, tool) = (
        teller.span("invoke_agent main"),
        teller.span("chat gpt-5"),
        teller.span("execute_tool files.read"),
    );
    assert_eq!(
        (agent.kind, chat.kind, tool.kind),
        (Kind::Internal, Kind::Client, Kind::Internal)
    );
    assert_eq!(
        (agent.parent, chat.parent, tool.parent),
        (None, Some(agent.id), Some(agent.id))
    );
    assert!(
        [chat, tool]
            .iter()
            .all(|span| span.trace == agent.trace && span.start >= agent.start && span.end <= agent.end)
    );
    assert!(
        teller
            .ended
            .iter()
            .all(|span| span.error.is_none() && span.end > span.start)
    );
    for (span, expected) in [
        (
            agent,
            json!({ "gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
                "gen_ai.conversation.id": "run-1", "gen_ai.agent.name": "main", "gen_ai.agent.description": "Does it.",
                "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cache_read.input_tokens": 4,
                "fief.session": "main", "fief.status": "done" }),
        ),
        (
            chat,
            json!({ "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
                "gen_ai.conversation.id": "run-1", "server.address": "api.openai.com", "server.port": 443,
                "gen_ai.request.temperature": 0.5, "gen_ai.request.stop_sequences": ["END"],
                "gen_ai.response.id": "resp-1", "gen_ai.response.model": "gpt-5-2026",
                "gen_ai.response.finish_reasons": ["tool_call"], "gen_ai.usage.input_tokens": 10,
                "gen_ai.usage.output_tokens": 2, "gen_ai.usage.cache_read.input_tokens": 4, "fief.session": "main" }),
        ),
        (
            tool,
            json!({ "gen_ai.operation.name": "execute_tool", "gen_ai.conversation.id": "run-1", "gen_ai.tool.name": "files.read",
                "gen_ai.tool.type": "function", "gen_ai.tool.call.id": "c1", "fief.plugin": "files", "fief.session": "main",
                "fief.outcome": "ok" }),
        ),
    ] {
        // All of them and no other: so content is absent too.
        let found: serde_json::Map<_, _> = span
            .attributes
            .0
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        assert_eq!(Value::Object(found), expected, "{}", span.name);
    }
}

#[test]
fn a_child_stands_below_the_call_that_started_it_and_a_plugins_call_below_the_plugins() {
    let mut teller = Teller::new(false);
    teller.begin();
    teller.call("main", "c1", "spawn_subagent");
    teller.tell("explore_1", &Note::Agent(&profile()));
    let (call, archetype, task) = ("c1".into(), "explore".into(), "look".into());
    teller.event(
        "explore_1",
        EventKind::AgentStarted {
            call,
            archetype,
            task,
            label: None,
            tools: Vec::new(),
        },
    );
    // The same id as in the parent's session: ids are a session's own.
    teller.call("explore_1", "c1", "files.grep");
    teller.call("explore_1", "c1/1", "files.read");
    teller.called("explore_1", "c1/1", "files.read", OutcomeKind::Ok);
    teller.called("explore_1", "c1", "files.grep", OutcomeKind::Ok);
    teller.ask("explore_1", Ok(answer("found")));
    let (report, usage) = ("it is there".into(), usage());
    teller.event(
        "explore_1",
        EventKind::AgentFinished {
            status: Status::Done,
            report,
            usage,
            own_usage: usage,
        },
    );
    teller.called("main", "c1", "spawn_subagent", OutcomeKind::Ok);
    teller.finish(Status::Done);

    let parent = |name: &str| teller.span(name).parent;
    let id = |name: &str| Some(teller.span(name).id);
    assert_eq!(parent("execute_tool spawn_subagent"), id("invoke_agent main"));
    assert_eq!(parent("invoke_agent explore"), id("execute_tool spawn_subagent"));
    assert_eq!(parent("execute_tool files.grep"), id("invoke_agent explore"));
    assert_eq!(parent("execute_tool files.read"), id("execute_tool files.grep"));
    assert_eq!(parent("chat gpt-5"), id("invoke_agent explore"));
    let mut ids: Vec<_> = teller.ended.iter().map(|span| span.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), teller.ended.len(), "ids are unique");
    // A further task is a trace of its own.
    let first = teller.span("invoke_agent main").trace;
    teller.ended.clear();
    teller.event("main", run_started());
    teller.finish(Status::Done);
    assert_ne!(teller.span("invoke_agent main").trace, first);
}

#[test]
fn failures_have_a_type_and_no_words_of_anybodys() {
    for (outcome, kind) in [
        (OutcomeKind::ToolError, "tool-error"),
        (OutcomeKind::Denied, "denied"),
        (OutcomeKind::Limit, "limit"),
        (OutcomeKind::Trap, "trap"),
        (OutcomeKind::Cancelled, "cancelled"),
    ] {
        let mut teller = Teller::new(false);
        teller.begin();
        // Refused before it began: it has no beginning of its own.
        teller.called("main", "c1", "files.write", outcome);
        let span = teller.span("execute_tool files.write");
        assert_eq!(value(span, "error.type"), Some(&kind.into()));
        assert_eq!(span.error.as_ref().unwrap().words, None);
        assert_eq!(span.end - span.start, 2_000_000);
    }
    for (kind, expected) in [
        (ModelErrorKind::ContextOverflow, "context-overflow"),
        (ModelErrorKind::Unavailable, "unavailable"),
        (ModelErrorKind::Refused, "refused"),
        (ModelErrorKind::Script, "script"),
    ] {
        let mut teller = Teller::new(false);
        teller.begin();
        teller.ask("main", Err(kind));
        teller.finish(Status::Failed);
        assert_eq!(value(teller.span("chat gpt-5"), "error.type"), Some(&expected.into()));
        assert_eq!(
            value(teller.span("invoke_agent main"), "error.type"),
            Some(&"failed".into())
        );
        assert!(
            teller
                .ended
                .iter()
                .all(|span| span.error.as_ref().unwrap().words.is_none())
        );
    }
}

#[test]
fn retries_are_marks_and_what_was_cancelled_ends_with_its_agent() {
    let mut teller = Teller::new(false);
    teller.begin();
    teller.tell("main", &Note::Asked(&request("main")));
    let error = "the server said: find it".to_owned();
    teller.event(
        "main",
        EventKind::ModelRetry {
            attempt: 1,
            wait_ms: 7,
            error,
        },
    );
    // The request was dropped: another one follows, and is dropped as well.
    teller.tell("main", &Note::Asked(&request("main")));
    teller.call("main", "c9", "files.read");
    teller.finish(Status::Cancelled);
    let chats: Vec<_> = teller.ended.iter().filter(|span| span.name == "chat gpt-5").collect();
    assert_eq!(chats.len(), 2);
    assert_eq!(chats[0].events.len(), 1);
    let mark = &chats[0].events[0];
    assert_eq!(
        (mark.name, mark.attributes.0.clone()),
        (
            "fief.retry",
            vec![("fief.attempt", 1.into()), ("fief.wait_ms", 7.into())]
        )
    );
    assert_eq!(teller.ended.len(), 4);
    assert!(
        teller
            .ended
            .iter()
            .all(|span| value(span, "error.type") == Some(&"cancelled".into()))
    );
}

#[test]
fn content_is_there_when_asked_for_without_secrets_and_bounded() {
    let mut teller = Teller::new(true);
    teller.begin();
    teller.ask("main", Ok(answer(&"long ".repeat(20_000))));
    teller.call("main", "c1", "files.read");
    teller.called("main", "c1", "files.read", OutcomeKind::ToolError);
    teller.ask("main", Err(ModelErrorKind::Refused));
    teller.finish(Status::Failed);
    let text = |span: &Span, key: &str| value(span, key).unwrap().as_str().unwrap().to_owned();
    let json = |span: &Span, key: &str| serde_json::from_str::<Value>(&text(span, key)).unwrap();
    let agent = teller.span("invoke_agent main");
    assert_eq!(
        json(agent, "gen_ai.input.messages"),
        json!([{ "role": "user", "parts": [{ "type": "text", "content": "find it, [redacted]" }] }])
    );
    assert_eq!(
        json(agent, "gen_ai.system_instructions")[0]["content"],
        "be good, [redacted]"
    );
    assert_eq!(
        json(agent, "gen_ai.output.messages")[0]["parts"][0]["content"],
        "the report"
    );
    let chats: Vec<_> = teller.ended.iter().filter(|span| span.name == "chat gpt-5").collect();
    assert_eq!(
        json(chats[0], "gen_ai.input.messages")[0]["parts"][0]["content"],
        "the key is [redacted]"
    );
    let said = json(chats[0], "gen_ai.output.messages");
    assert_eq!(said[0]["finish_reason"], "tool_call");
    assert_eq!(said[0]["parts"][1]["arguments"], json!({ "path": "[redacted]" }));
    let long = said[0]["parts"][0]["content"].as_str().unwrap();
    assert!(long.len() < 17 << 10 && long.contains("[cut here: "), "{}", long.len());
    assert_eq!(
        chats[1].error.as_ref().unwrap().words.as_deref(),
        Some("the server said: [redacted]")
    );
    let tool = teller.span("execute_tool files.read");
    assert_eq!(json(tool, "gen_ai.tool.call.arguments"), json!({ "path": "a.txt" }));
    assert_eq!(text(tool, "gen_ai.tool.call.result"), "what it says");
    assert_eq!(tool.error.as_ref().unwrap().words.as_deref(), Some("what it says"));
}

#[test]
fn a_long_history_keeps_its_newest_messages_and_says_how_many_it_lacks() {
    let author = Author::new(Arc::default());
    let message = |number: usize| Message::User {
        content: vec![Content::Text(format!("{number}: {}", "x".repeat(10 << 10)))],
    };
    let mut asked = request("main");
    asked.history = Arc::new((0..20).map(message).collect());
    let (messages, omitted) = author.input(&asked);
    let kept: Vec<Value> = serde_json::from_str(&messages).unwrap();
    assert!(
        messages.len() <= 65 << 10 && kept.len() + omitted == 20 && omitted > 0,
        "{omitted}"
    );
    let last = kept.last().unwrap()["parts"][0]["content"].as_str().unwrap();
    assert!(last.starts_with("19: "), "{last}");
}

#[test]
fn what_a_server_or_a_model_puts_in_place_of_a_name_is_cut() {
    let mut teller = Teller::new(false);
    teller.begin();
    let mut long = answer("x");
    long.served.id = Some("ü".repeat(1 << 20));
    teller.ask("main", Ok(long));
    teller.called("main", "c1", &"n".repeat(1 << 20), OutcomeKind::Denied);
    assert!(teller.ended.iter().all(|span| span.size() < 4096));
}

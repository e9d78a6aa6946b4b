//! The command line as it is written.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs LLM agents whose every tool is a sandboxed WebAssembly component that holds only what it is granted.
#[derive(Debug, Parser)]
#[command(name = "fief", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent on a task.
    Run(Run),
    /// Build the plugins and run a recorded task on real files; needs no key.
    Demo(Demo),
    /// Show what an agent could call, with what grants, and why not more.
    Tools(Tools),
    /// Accept a repository's fief.toml as it is now.
    Trust(Trust),
    /// Talk with an agent: many tasks, one history.
    Chat(Chat),
    /// Call one tool, without a model.
    Call(Call),
    /// List past runs, the newest first.
    Runs(Runs),
    /// Show one run as a tree of sessions, calls, times and tokens.
    Show(Show),
    /// List the archetypes, or check some.
    Agents(Agents),
    /// Build, check, inspect or install plugins.
    #[command(subcommand)]
    Plugin(Plugin),
    /// Say what is missing on this machine, and how to mend it; asks each configured model for one token.
    Doctor(Doctor),
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

/// Where plugins, archetypes and the configuration come from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Places {
    /// The operator's configuration, in place of the one in the user's configuration directory.
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    pub(crate) config: Option<PathBuf>,
    /// Another directory of plugins; repeatable.
    #[arg(long, value_name = "DIR", help_heading = "Configuration")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Another directory of archetypes; repeatable.
    #[arg(long, value_name = "DIR", help_heading = "Configuration")]
    pub(crate) archetypes: Vec<PathBuf>,
}

/// What widens policy, and is the grant where no manifest gives one.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Allow {
    /// Let tools read a directory; one below the working directory is seen below /work, another as /NAME by its last
    /// part, or as GUEST; repeatable.
    #[arg(long, value_name = "DIR[=GUEST]", help_heading = "Grants")]
    pub(crate) allow_read: Vec<String>,
    /// Let tools read and write a directory that is there, seen as with --allow-read; repeatable.
    #[arg(long, value_name = "DIR[=GUEST]", help_heading = "Grants")]
    pub(crate) allow_write: Vec<String>,
    /// Let tools send requests to an origin, such as https://api.github.com; repeatable.
    #[arg(long, value_name = "ORIGIN", help_heading = "Grants")]
    pub(crate) allow_net: Vec<String>,
    /// Let the host add a secret to requests to an origin; repeatable.
    #[arg(long, value_name = "NAME@ORIGIN", help_heading = "Grants")]
    pub(crate) allow_secret: Vec<String>,
}

/// Which agent, and what is shown and kept of its run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Session {
    /// The archetype of the main agent.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) archetype: Option<String>,
    /// PROVIDER:NAME, such as openai:gpt-5, anthropic:claude-sonnet-4-5 or script:FILE, or a name from [models].
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Show nothing but the report.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Keep the record below this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "no_record")]
    pub(crate) record: Option<PathBuf>,
    /// Keep no record.
    #[arg(long)]
    pub(crate) no_record: bool,
    #[command(flatten)]
    pub(crate) places: Places,
    #[command(flatten)]
    pub(crate) allow: Allow,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// What is to be done; `-` reads it from standard input.
    pub(crate) task: String,
    /// Add the task to a past run: its name, the start of its name, or `last`.
    #[arg(long = "continue", value_name = "RUN")]
    pub(crate) continued: Option<String>,
    /// Print the events on standard output, one JSON object a line.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Args, Debug)]
pub(crate) struct Chat {
    /// Go on with a past run: its name, the start of its name, or `last`.
    #[arg(long = "continue", value_name = "RUN")]
    pub(crate) continued: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Which demonstration; without it, a task over the repository's own files.
    #[arg(value_enum)]
    pub(crate) which: Option<DemoKind>,
    /// Print the events on standard output, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoKind {
    /// Children from archetypes: built in, made in Rust, written in Markdown.
    Spawn,
    /// Children that the model writes, inside a bound.
    Dynamic,
    /// A worker that is served as a tool.
    Worker,
}

#[derive(Args, Debug)]
pub(crate) struct Tools {
    /// The archetype of the agent.
    #[arg(long, short, value_name = "NAME")]
    pub(crate) archetype: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Explain one tool or plugin: what it needs, what is granted, what policy takes away.
    #[arg(long, value_name = "TOOL")]
    pub(crate) why: Option<String>,
    #[command(flatten)]
    pub(crate) places: Places,
    #[command(flatten)]
    pub(crate) allow: Allow,
}

#[derive(Args, Debug)]
pub(crate) struct Trust {
    /// The directory with the file.
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Call {
    /// The tool, as PLUGIN.TOOL.
    pub(crate) tool: String,
    /// Its arguments, a JSON object; `-` reads them from standard input.
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) places: Places,
    #[command(flatten)]
    pub(crate) allow: Allow,
}

#[derive(Args, Debug)]
pub(crate) struct Runs {
    /// Where the records are, if not in the user's state directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Its name, the start of its name, `last`, or its folder.
    pub(crate) run: String,
    /// Where the records are, if not in the user's state directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Show one session's history in place of the tree.
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Agents {
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) places: Places,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Check an archetype, or every one in a directory.
    Check {
        /// A file or a directory.
        path: PathBuf,
        #[command(flatten)]
        places: Places,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Build a plugin from its source.
    Build {
        /// The directory with plugin.toml.
        #[arg(required = true)]
        dirs: Vec<PathBuf>,
    },
    /// Check a plugin: its manifest, its tools and their schemas, its examples.
    Check {
        /// A component, or the directory with plugin.toml.
        path: PathBuf,
    },
    /// Show what a plugin offers, needs and imports.
    Inspect {
        /// A component, or the directory with plugin.toml.
        path: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Copy a built plugin into the user's data directory.
    Install {
        /// A component, or the directory with plugin.toml.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Replace one of the same name.
        #[arg(long)]
        force: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) places: Places,
    /// Ask no server.
    #[arg(long)]
    pub(crate) offline: bool,
}

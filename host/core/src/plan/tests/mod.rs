//! A small world: four plugins that need different things, and archetypes made as a test needs them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::json;

use super::{PlanError, Planned};
use crate::agent::spec::{AgentSpec, ChildRequest};
use crate::grant::FileMode;
use crate::grant::policy::{Policy, PolicyDir, PolicyOrigin};
use crate::id::Digest;
use crate::manifest::archetype::{
    AgentConfig, Agents, Archetype, Disallowed, Dynamic, GrantRequest, GrantTable, OriginRequest, SpawnConfig,
    ToolGrant,
};
use crate::manifest::plugin::{NeededOrigin, Needs};
use crate::tool::{Hints, PluginInfo, ToolSpec};
use crate::world::World;

mod absent;
mod children;
mod explain;
mod holdings;
mod properties;

/// A plugin with these tools.
fn plugin(name: &str, tools: &[&str], imports: &[&str], needs: Needs) -> PluginInfo {
    let tool = |tool: &&str| ToolSpec {
        name: tool.parse().unwrap(),
        title: None,
        description: format!("does {tool}"),
        input_schema: Arc::new(json!({"type": "object"})),
        output_schema: None,
        hints: Hints::default(),
    };
    PluginInfo {
        name: name.parse().unwrap(),
        version: String::new(),
        description: String::new(),
        digest: Digest::of(name.as_bytes()),
        path: format!("/plugins/{name}.wasm").into(),
        needs,
        tools: tools.iter().map(tool).collect(),
        imports: imports.iter().map(|import| (*import).to_owned()).collect(),
        filter: false,
    }
}

fn http() -> Needs {
    Needs {
        http: vec![NeededOrigin("*".into())],
        ..Needs::default()
    }
}

/// `files` and `count` link anywhere, `web` needs the network, `relay` the toolbox, `watch` is a filter.
fn world() -> World {
    let files = Needs {
        files: Some(FileMode::Write),
        ..Needs::default()
    };
    let relay = Needs {
        toolbox: true,
        ..Needs::default()
    };
    let mut watch = plugin("watch", &[], &[], Needs::default());
    watch.filter = true;
    let plugins = [
        plugin(
            "files",
            &["read", "write", "grep"],
            &["wasi:filesystem/types@0.2.6"],
            files,
        ),
        plugin("web", &["fetch"], &["wasi:http/outgoing-handler@0.2.6"], http()),
        plugin("count", &["words"], &[], Needs::default()),
        plugin("relay", &["run"], &["fief:plugin/toolbox@0.1.0"], relay),
        watch,
    ];
    World {
        plugins: plugins
            .into_iter()
            .map(|plugin| (plugin.name.clone(), Arc::new(plugin)))
            .collect(),
        policy: Policy {
            working_directory: "/project".into(),
            files: vec![PolicyDir {
                host: "/project".into(),
                guest: "/work".into(),
                mode: FileMode::Read,
                rule: "[policy] read `.`".into(),
            }],
            net: vec![origin("https://a.com")],
            toolbox: true,
            ..Policy::default()
        },
        model: Some("test".into()),
        models: vec!["test".into(), "other".into()],
        ..World::default()
    }
}

fn origin(pattern: &str) -> PolicyOrigin {
    let rule = format!("--allow-net {pattern}").into();
    PolicyOrigin {
        pattern: pattern.parse().unwrap(),
        private: false,
        rule,
    }
}

fn archetype(name: &str) -> Archetype {
    let description = format!("Is {name}.");
    Archetype {
        origin: format!("archetypes/{name}.toml"),
        ..Archetype::new(name.parse().unwrap(), description, "You are a test.")
    }
}

/// Registers archetypes.
fn with(mut world: World, archetypes: impl IntoIterator<Item = Archetype>) -> World {
    for archetype in archetypes {
        world.registered.push(archetype.name.clone());
        world.archetypes.insert(archetype.name.key(), Arc::new(archetype));
    }
    world
}

/// An archetype that may spawn every registered one and make up children.
fn boss() -> Archetype {
    Archetype {
        agents: Some(Agents::All),
        dynamic: Some(Dynamic::default()),
        ..archetype("boss")
    }
}

/// An entry of `tools` as wide as policy.
fn wide(plugin: &str) -> ToolGrant {
    ToolGrant {
        plugin: plugin.parse().unwrap(),
        digest: None,
        allow: None,
        grant: GrantRequest::Policy,
    }
}

/// An entry of `tools` with this table.
fn exactly(plugin: &str, table: GrantTable) -> ToolGrant {
    ToolGrant {
        grant: GrantRequest::Exact(table),
        ..wide(plugin)
    }
}

fn allowing(plugin: &str, tools: &[&str]) -> ToolGrant {
    ToolGrant {
        allow: Some(tools.iter().map(|tool| tool.parse().unwrap()).collect()),
        ..wide(plugin)
    }
}

fn to_origin(origin: &str) -> GrantTable {
    GrantTable {
        http: vec![OriginRequest {
            origin: origin.into(),
            private: false,
        }],
        ..GrantTable::default()
    }
}

fn spawn(name: &str) -> ChildRequest {
    ChildRequest::Archetype {
        name: name.parse().unwrap(),
        task: "t".into(),
        label: None,
    }
}

fn make_up(tools: Option<&[&str]>) -> ChildRequest {
    ChildRequest::Dynamic {
        instruction: "You are an expert.".into(),
        task: "t".into(),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
    }
}

fn names(spec: &AgentSpec) -> Vec<&str> {
    spec.tools.keys().map(String::as_str).collect()
}

fn declared(spec: &AgentSpec) -> Vec<&str> {
    spec.declarations
        .iter()
        .map(|declaration| declaration.name.as_str())
        .collect()
}

fn refused(plan: Result<Planned, PlanError>) -> PlanError {
    plan.map(|planned| names(&planned.spec).join(", ")).unwrap_err()
}

//! In every order of events: each call has one result, nothing follows the end, the tree's usage adds up, and budgets
//! come back.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::tool::OutcomeKind;

/// One thing that a hostile world may do next.
#[derive(Clone, Debug)]
enum Move {
    /// The model answers with calls of these kinds; none: with text.
    Answer(Vec<u8>),
    Blank,
    Fail(u8),
    /// The outstanding call at this index ends in this way.
    End(usize, u8),
    /// A call that nobody makes, or that has ended.
    Stray,
    Deadline,
    Cancel,
    NewTask,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        6 => prop::collection::vec(0u8..8, 0..4).prop_map(Move::Answer),
        1 => Just(Move::Blank),
        1 => (0u8..4).prop_map(Move::Fail),
        10 => (0usize..8, 0u8..6).prop_map(|(at, how)| Move::End(at, how)),
        1 => Just(Move::Stray),
        1 => Just(Move::Deadline),
        1 => Just(Move::Cancel),
        2 => Just(Move::NewTask),
    ];
    prop::collection::vec(one, 0..60)
}

fn specs() -> impl Strategy<Value = Arc<AgentSpec>> {
    (
        prop::option::of(1u32..4),
        prop::option::of(1u32..3),
        prop::option::of(0u32..3),
        prop::option::of(500u64..5_000),
        prop::option::of(0u32..4),
        any::<[bool; 4]>(),
    )
        .prop_map(
            |(turns, per_turn, keep, tokens, children, [parallel, always, skip, schema])| {
                parent(|spec| {
                    spec.bounds.max_turns = turns;
                    spec.bounds.max_tool_calls_per_turn = per_turn;
                    spec.bounds.keep_tool_results = keep;
                    spec.bounds.tokens = tokens;
                    spec.bounds.children = children;
                    spec.parallel_tool_calls = Some(parallel);
                    spec.summary = if always { Summary::Always } else { Summary::AtLimit };
                    spec.ways.skip_summarization = skip;
                    spec.report_schema = schema.then(|| Arc::new(json!({"type": "object"})));
                })
            },
        )
}

/// Follows what a driver would know, and checks every step.
struct World {
    agent: Option<Agent>,
    asked: bool,
    /// Outstanding calls, and whether each starts a child.
    running: Vec<(String, bool)>,
    resulted: BTreeSet<String>,
    called: BTreeSet<String>,
    ended: bool,
    spent: Usage,
    own: Usage,
    recorded: Vec<Message>,
    count: u32,
}

impl World {
    fn new(spec: &Arc<AgentSpec>) -> Self {
        let (agent, actions) = Agent::start(
            Arc::clone(spec),
            Start {
                task: "T".into(),
                ..Start::default()
            },
        );
        let mut world = Self {
            agent: Some(agent),
            asked: false,
            running: Vec::new(),
            resulted: BTreeSet::new(),
            called: BTreeSet::new(),
            ended: false,
            spent: Usage::default(),
            own: Usage::default(),
            recorded: Vec::new(),
            count: 0,
        };
        world.take(actions);
        world
    }

    fn feed(&mut self, input: Input) {
        if matches!(input, Input::NewTask(_)) && self.ended {
            self.ended = false;
        }
        let (agent, actions) = step(self.agent.take().unwrap(), input);
        self.agent = Some(agent);
        self.take(actions);
    }

    fn take(&mut self, actions: Vec<Action>) {
        for action in actions {
            assert!(!self.ended, "an action follows the end: {action:?}");
            match action {
                Action::Ask(request) => {
                    assert!(!self.asked, "asked twice at once");
                    check_history(&request.history);
                    self.asked = true;
                }
                Action::Call(call) => self.running.push((call.call, false)),
                Action::Spawn { call, .. } => self.running.push((call, true)),
                Action::StopCalls => {
                    self.asked = false;
                    self.running.retain(|(_, child)| *child);
                }
                Action::AbandonChildren => self.running.clear(),
                Action::Record(message) => self.recorded.push(message),
                Action::Emit(EventKind::ToolFinished { call, .. }) => {
                    self.running.retain(|(running, _)| *running != call);
                    assert!(self.resulted.insert(call), "two results for one call");
                }
                Action::Emit(EventKind::ModelMessage { tool_calls, .. }) => {
                    for call in tool_calls {
                        assert!(self.called.insert(call.call), "two calls of one id");
                    }
                }
                Action::Emit(_) => {}
                Action::Finish(report) => {
                    self.ended = true;
                    assert_eq!(report.usage, self.spent, "the tree's usage is the sum");
                    assert_eq!(report.own_usage, self.own);
                    assert_eq!(self.resulted, self.called, "a call without a result");
                    assert!(!report.text.trim().is_empty(), "an empty report: {report:?}");
                    assert!(self.running.is_empty() && !self.asked, "something outlives the end");
                    let agent = self.agent.as_ref();
                    assert_eq!(
                        agent.map_or(0, |agent| agent.account().outstanding()),
                        0,
                        "a reservation is left"
                    );
                }
            }
        }
    }

    fn play(&mut self, one: &Move) {
        match one {
            Move::Answer(kinds) if self.asked => {
                let calls = kinds.iter().map(|kind| self.call(*kind)).collect();
                self.answer("text", calls);
            }
            Move::Blank if self.asked => self.answer(" ", Vec::new()),
            Move::Fail(kind) if self.asked => {
                self.asked = false;
                let kind = [
                    ModelErrorKind::ContextOverflow,
                    ModelErrorKind::ContextOverflow,
                    ModelErrorKind::Unavailable,
                    ModelErrorKind::Refused,
                ][usize::from(*kind)];
                self.feed(fails(kind));
            }
            Move::End(at, how) if !self.running.is_empty() => {
                let (id, child) = self.running.remove(at % self.running.len());
                self.end(&id, child, *how);
            }
            Move::Stray => {
                self.feed(ended("nobody", "x"));
                self.feed(reported("nobody", Status::Done, "x"));
                self.feed(refused("nobody"));
            }
            Move::Deadline => self.feed(Input::Deadline),
            Move::Cancel => self.feed(Input::Cancel),
            Move::NewTask if self.ended => self.feed(Input::NewTask("U".into())),
            _ => {}
        }
    }

    fn call(&mut self, kind: u8) -> ToolCall {
        self.count += 1;
        // Every third id is one that was given before.
        let id = format!("id{}", if self.count.is_multiple_of(3) { 1 } else { self.count });
        match kind {
            0 | 1 => read(&id),
            2 => call(&id, "files.read", json!("{broken")),
            3 => call(&id, "files.read", json!({})),
            4 => call(&id, "nobody.knows", json!({})),
            5 => spawn(&id, "nobody"),
            6 => spawn(&id, "explore"),
            _ => call(&id, "agent-worker", json!({"subtask": "x"})),
        }
    }

    fn answer(&mut self, text: &str, calls: Vec<ToolCall>) {
        self.asked = false;
        self.spent += usage(10, 5);
        self.own += usage(10, 5);
        self.feed(Input::Answered(answer(text, calls)));
    }

    fn end(&mut self, id: &str, child: bool, how: u8) {
        if !child {
            let outcome = Outcome::refused(OutcomeKind::Trap, "crashed");
            self.feed(match how {
                0 => Input::CallFinished {
                    call: id.into(),
                    outcome,
                    ms: 0,
                },
                _ => ended(id, "fine"),
            });
            return;
        }
        if how == 0 {
            self.feed(refused(id));
            return;
        }
        self.spent += usage(100, 50);
        let status = [
            Status::Done,
            Status::Failed,
            Status::Cancelled,
            Status::Budget,
            Status::Done,
        ][usize::from(how - 1)];
        self.feed(reported(id, status, "{}"));
    }

    /// From wherever it is, the world lets it end.
    fn settle(&mut self) {
        for _ in 0..100 {
            if self.ended {
                return;
            }
            if let Some((id, child)) = self.running.pop() {
                self.end(&id, child, 3);
            } else {
                assert!(self.asked, "it waits for nothing and has not ended");
                self.answer("{}", Vec::new());
            }
        }
        panic!("it never ends");
    }
}

/// What every provider demands: each call has its result, right after it, in order.
fn check_history(history: &[Message]) {
    for (at, message) in history.iter().enumerate() {
        match message {
            Message::Assistant(one) if !one.calls.is_empty() => {
                let Some(Message::Results { results }) = history.get(at + 1) else {
                    panic!("calls without results at {at}");
                };
                let ids = |all: Vec<&String>| all.into_iter().cloned().collect::<Vec<_>>();
                assert_eq!(
                    ids(one.calls.iter().map(|call| &call.id).collect()),
                    ids(results.iter().map(|result| &result.call).collect())
                );
                assert!(
                    one.calls
                        .iter()
                        .all(|call| matches!(call.arguments, Arguments::Object(_)))
                );
            }
            Message::Results { .. } => {
                assert!(matches!(&history[at - 1], Message::Assistant(one) if !one.calls.is_empty()));
            }
            _ => {}
        }
    }
    assert!(matches!(history.first(), Some(Message::User { .. })), "the task stays");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn b86_b96_b97_b98_any_order_of_events_ends_clean(spec in specs(), moves in moves()) {
        let mut world = World::new(&spec);
        for one in &moves {
            world.play(one);
        }
        world.settle();
        let account = world.agent.as_ref().unwrap().account();
        prop_assert_eq!(account.outstanding(), 0);
        if let (Some(limit), Some(left)) = (account.limit().tokens, account.left().tokens) {
            prop_assert_eq!(left, limit.saturating_sub(world.spent.tokens()), "all that is not spent is there again");
        }
        check_history(&world.agent.as_ref().unwrap().history());
    }

    #[test]
    fn no_text_closes_its_own_frame(text in "(\\PC|\n|</report mark=\"[0-9a-f]{12}\">|<report session=\"main\" status=\"done\">|\\[cut here: 3){0,20}", done in any::<bool>()) {
        let report = Report {
            status: if done { Status::Done } else { Status::Failed },
            text: text.clone(),
            usage: Usage::default(),
            own_usage: Usage::default(),
            failure: None,
            descendants: 0,
        };
        let session = SessionId::new("explore_1").unwrap();
        let framed = report.framed(&session);
        let head = framed.lines().next().unwrap();
        let mark = head.rsplit("mark=\"").next().unwrap().trim_end_matches("\">");
        prop_assert!(!text.contains(mark));
        let inside = framed.strip_prefix(&format!("{head}\n")).unwrap();
        let (inside, _) = inside.split_once(&format!("\n</report mark=\"{mark}\">")).unwrap();
        prop_assert_eq!(inside, text);
        prop_assert_eq!(&framed, &report.framed(&session), "the same text has the same frame");
        // Not even the frame itself, handed back as a text, closes the next one.
        let again = Report { text: report.framed(&session), ..report.clone() }.framed(&session);
        prop_assert!(!again.lines().next().unwrap().contains(mark));
    }
}

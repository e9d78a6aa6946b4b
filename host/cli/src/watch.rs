//! Watches one task of a session: shows its events, answers its questions, and takes Ctrl-C.

use fief::core::event::Event;
use fief::core::port::ModelErrorKind;
use fief::core::report::{Report, Status};
use fief::{Question, Session};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::exit::Exit;
use crate::person;
use crate::render::{self, View};

/// Runs a task to its end. The first Ctrl-C stops it cleanly, and what it has done is reported; the second ends the
/// process at once.
pub(crate) async fn task(
    session: &mut Session,
    task: String,
    events: &mut UnboundedReceiver<Event>,
    questions: &mut UnboundedReceiver<Question>,
    view: &mut View,
) -> Report {
    let interrupts = Interrupts::listen(session.handle());
    let running = session.task(task);
    tokio::pin!(running);
    let report = loop {
        tokio::select! {
            report = &mut running => break report,
            Some(event) = events.recv() => view.event(&event),
            Some(question) = questions.recv() => {
                view.pause();
                tokio::select! {
                    () = person::answer(question) => {}
                    report = &mut running => break report,
                }
            }
        }
    };
    drop(interrupts);
    while let Ok(event) = events.try_recv() {
        view.event(&event);
    }
    view.pause();
    report
}

/// Listens for Ctrl-C while a task runs, on its own: whatever else is busy, the second one ends the process.
struct Interrupts(tokio::task::JoinHandle<()>);

impl Interrupts {
    fn listen(handle: fief::Handle) -> Self {
        Self(tokio::spawn(async move {
            for press in 1.. {
                if tokio::signal::ctrl_c().await.is_err() {
                    return; // Without a handler the system's own applies: the process ends.
                }
                if press > 1 {
                    std::process::exit(Exit::Interrupted as i32);
                }
                render::note("stopping; press Ctrl-C again to end at once");
                handle.cancel();
            }
        }))
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The exit code of a run.
pub(crate) fn exit(report: &Report) -> Exit {
    match (report.status, report.failure.as_ref().map(|failure| failure.kind)) {
        (Status::Done, _) => Exit::Done,
        (Status::Cancelled, _) => Exit::Interrupted,
        (_, Some(ModelErrorKind::Unavailable | ModelErrorKind::Refused)) => Exit::Model,
        (_, Some(ModelErrorKind::Script)) => Exit::Usage,
        _ => Exit::Failed,
    }
}

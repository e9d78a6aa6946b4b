//! The engine: the one place where wasmtime is configured, each number with its reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::Component;
use wasmtime::{Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

use crate::SandboxError;

/// How often a guest yields, and so how late a limit or a cancellation is noticed.
const TICK: Duration = Duration::from_millis(10);
/// The call stack of a guest. Rust and C keep their own stack in linear memory beside it; CPython's recursion limit is
/// reached within half of it.
pub(crate) const CALL_STACK: usize = 1 << 20;
/// The call stack and what host functions called on it need.
const FIBER_STACK: usize = 2 << 20;
/// Of a stack, what is zeroed by hand when it is returned. With 0 the kernel unmaps it on every call, whose locks make
/// two threads slower than one (43,000 calls/s against 92,000).
const STACK_KEPT: usize = 64 << 10;
/// Of a table, what is zeroed by hand when it is returned: the tables of ordinary guests hold some hundred entries of
/// 8 bytes, less than a system call costs.
const TABLE_KEPT: usize = 16 << 10;
/// Calls in flight at most, for a machine with the usual `vm.max_map_count` of 65,530 and 6 maps an instance.
const MOST_CALLS: u32 = 8_000;
/// Maps that one instance needs.
const MAPS: u64 = 6;
/// Maps that the rest of the process may need.
const OTHER_MAPS: u64 = 8_000;
/// Memory of a call in flight that does nothing: 55 KiB were measured.
const IDLE_CALL: u64 = 80 << 10;
/// The fewest calls in flight that are worth starting with.
const FEWEST_CALLS: u32 = 16;
/// The most that a table may hold, whatever its limit says.
const TABLE_ELEMENTS: usize = 200_000;
/// Tables for each call in flight: a component built for WASI has its own, and one more for its imports.
const TABLES: u32 = 4;
/// Core instances for each call in flight: beside the guest itself a component holds adapters, CPython a dozen.
const CORE_INSTANCES: u32 = 16;

/// The engine with its clock and its pool.
pub(crate) struct Runtime {
    engine: Engine,
    ticker: Ticker,
    permits: Arc<Semaphore>,
    calls: u32,
}

impl Runtime {
    /// Starts the engine with the largest pool that this machine allows.
    pub(crate) fn new(pagemap_scan: bool) -> Result<Self, SandboxError> {
        let mut calls = calls_in_flight();
        let engine = loop {
            match Engine::new(&config(calls, pagemap_scan)) {
                Ok(engine) => break engine,
                // The pool reserves address space, which a limit of the system's may refuse; a smaller one works too.
                Err(_) if calls > FEWEST_CALLS => calls = (calls / 4).max(FEWEST_CALLS),
                Err(error) => return Err(SandboxError::Engine(format!("{error:#}"))),
            }
        };
        let ticker = Ticker::start(engine.weak()).map_err(|error| SandboxError::Engine(error.to_string()))?;
        Ok(Self {
            engine,
            ticker,
            permits: Arc::new(Semaphore::new(calls as usize)),
            calls,
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Calls in flight at most; a further one waits its turn.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// Waits for a place in the pool.
    pub(crate) async fn place(&self, weight: u32) -> Result<Place<'_>, SandboxError> {
        let permit = Arc::clone(&self.permits)
            .acquire_many_owned(weight.min(self.calls))
            .await;
        let permit = permit.map_err(|_| SandboxError::Engine("the engine is shut down".into()))?;
        Ok(Place {
            _running: self.ticker.running(),
            _permit: permit,
        })
    }

    /// Makes the guest of a store yield at every tick, through the runtime's own queue, so that it keeps no other task
    /// of the host waiting.
    pub(crate) fn yield_every_tick<T>(store: &mut Store<T>) {
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|_| {
            Ok(wasmtime::UpdateDeadline::YieldCustom(
                1,
                Box::pin(tokio::task::yield_now()),
            ))
        });
    }
}

/// A place in the pool, and the clock running: held for the length of a call.
pub(crate) struct Place<'a> {
    _running: Running<'a>,
    _permit: OwnedSemaphorePermit,
}

/// How many places of the pool a call of this component takes.
pub(crate) fn weight(component: &Component) -> u32 {
    let Some(needed) = component.resources_required() else {
        return 1;
    };
    needed.num_memories.max(needed.num_tables.div_ceil(TABLES)).max(1)
}

fn config(calls: u32, pagemap_scan: bool) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES))
        .total_memories(calls)
        .total_tables(calls.saturating_mul(TABLES))
        .total_stacks(calls)
        .max_tables_per_module(8)
        .table_elements(TABLE_ELEMENTS)
        .async_stack_keep_resident(STACK_KEPT)
        .table_keep_resident(TABLE_KEPT)
        // The scan resets only pages that the kernel reports as present. One that is swapped out or being migrated
        // keeps its data for the slot's next call, so that it is the operator's choice and off unless he makes it.
        .pagemap_scan(if pagemap_scan { Enabled::Auto } else { Enabled::No });

    let mut config = Config::new();
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .epoch_interruption(true)
        .max_wasm_stack(CALL_STACK)
        .async_stack_size(FIBER_STACK)
        // A stack may hold what an earlier guest's call left on it.
        .async_stack_zeroing(true)
        // Backtraces name functions; line numbers would take parsing of what a stranger compiled.
        .wasm_backtrace_details(wasmtime::WasmBacktraceDetails::Disable)
        .native_unwind_info(false)
        // What no tool chain for components emits, and what would let guests observe the machine, stays out.
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .relaxed_simd_deterministic(true);
    config
}

/// How many calls this machine can hold at once.
fn calls_in_flight() -> u32 {
    let maps =
        read_number("/proc/sys/vm/max_map_count").map_or(u64::MAX, |maps| maps.saturating_sub(OTHER_MAPS) / MAPS);
    // Half of the memory, so that a full pool leaves room for what the guests themselves allocate.
    let memory = total_memory().map_or(u64::MAX, |bytes| bytes / 2 / IDLE_CALL);
    let calls = maps.min(memory).min(u64::from(MOST_CALLS));
    u32::try_from(calls).unwrap_or(MOST_CALLS).max(FEWEST_CALLS)
}

fn read_number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// In bytes; absent where the system does not say.
fn total_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kib.checked_mul(1_024)
}

/// Advances the engine's epoch while calls run, and sleeps while none does.
struct Ticker {
    shared: Arc<Ticks>,
    thread: Option<JoinHandle<()>>,
    handle: Thread,
}

struct Ticks {
    running: AtomicUsize,
    stop: AtomicBool,
}

/// Keeps the ticker awake.
struct Running<'a>(&'a Ticks);

impl Ticker {
    fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let shared = Arc::new(Ticks {
            running: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let ticks = Arc::clone(&shared);
        let thread = thread::Builder::new().name("fief-ticker".into()).spawn(move || {
            while !ticks.stop.load(Ordering::Acquire) {
                if ticks.running.load(Ordering::Acquire) == 0 {
                    // Whoever starts the first call unparks, also between the check and the parking.
                    thread::park();
                    continue;
                }
                thread::sleep(TICK);
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
            }
        })?;
        Ok(Self {
            shared,
            handle: thread.thread().clone(),
            thread: Some(thread),
        })
    }

    fn running(&self) -> Running<'_> {
        if self.shared.running.fetch_add(1, Ordering::AcqRel) == 0 {
            self.handle.unpark();
        }
        Running(&self.shared)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.handle.unpark();
        if let Some(thread) = self.thread.take() {
            // It sleeps for a tick at most, and cannot panic.
            let _ = thread.join();
        }
    }
}

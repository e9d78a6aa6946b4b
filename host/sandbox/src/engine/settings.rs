//! Every number of the engine's, each with its reason, and what becomes of them: wasmtime's configuration.

use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

/// The call stack of a guest. Rust and C keep their own stack in linear memory beside it; CPython's recursion limit is
/// reached within half of it.
pub(crate) const CALL_STACK: usize = 1 << 20;
/// The call stack and what host functions called on it need.
pub(super) const FIBER_STACK: usize = 2 << 20;
/// Of a stack, what stays with it when it is returned and is zeroed by hand. With 0 the kernel takes it back on every
/// call, whose locks make two threads slower than one (43,000 calls/s against 92,000).
pub(super) const STACK_KEPT: usize = 64 << 10;
/// Of a memory, what stays with it when it is returned and is zeroed by hand: a guest that is given 100 KB of JSON touches
/// half of it. To take pages from the kernel anew costs ten times what zeroing them does.
#[cfg(target_os = "linux")]
pub(super) const MEMORY_KEPT: usize = 1 << 20;
/// Every so many calls a memory keeps no more than [`SELDOM_KEPT`]: what stays with it is zeroed after each call, whether
/// it was touched or not, so that one large call would slow down all small ones after it. Less than one call in a hundred
/// takes its pages anew for that.
#[cfg(target_os = "linux")]
pub(super) const SELDOM: u32 = 128;
/// What a call of a few hundred bytes touches, and some more.
#[cfg(target_os = "linux")]
pub(super) const SELDOM_KEPT: usize = 128 << 10;
/// Memories that wait for their next call at most, and stacks too. Each takes maps of the process, of which the calls in
/// flight may need all but [`OTHER_MAPS`]; half a dozen serve a host whose calls do not wait.
#[cfg(target_os = "linux")]
pub(super) const MOST_WAITING: usize = 1_000;
/// Of all memories and stacks that wait for their next call, what stays with them, in bytes. An echo leaves 50 KiB.
#[cfg(target_os = "linux")]
pub(super) const KEPT_IN_ALL: usize = 256 << 20;
/// Components with more static data than this, in bytes, run in the pool, where the kernel shares one image of their data
/// between all calls; copying less costs less than to map it.
pub(super) const LARGE_DATA: u64 = 256 << 10;
/// In the pool, of a memory, what is zeroed by hand where `pagemap_scan` finds it. Without the scan it would be touched
/// as a whole, so that it is 0 then.
const POOL_MEMORY_KEPT: usize = 1 << 20;
/// In the pool, of a table, what is zeroed by hand when it is returned: the tables of ordinary guests hold some hundred
/// entries of 8 bytes, less than a system call costs.
const TABLE_KEPT: usize = 16 << 10;
/// Calls in flight at most, for a machine with the usual `vm.max_map_count` of 65,530.
pub(super) const MOST_CALLS: u32 = 8_000;
/// Maps that one call needs in the pool; one on recycled memories needs four.
pub(super) const MAPS: u64 = 6;
/// Maps that the rest of the process may need.
pub(super) const OTHER_MAPS: u64 = 8_000;
/// Memory of a call in flight that does nothing: 55 KiB were measured.
pub(super) const IDLE_CALL: u64 = 80 << 10;
/// Addresses of a call in flight: its memory of 4 GiB with a guard on either side, and its stack.
pub(super) const ADDRESSES: u64 = (4 << 30) + (66 << 20);
/// The fewest calls in flight that are worth starting with.
pub(super) const FEWEST_CALLS: u32 = 16;
/// The most that a table may hold in the pool, whatever its limit says.
const TABLE_ELEMENTS: usize = 200_000;
/// In the pool, tables for each call in flight: a component built for WASI has its own, and one more for its imports.
pub(super) const TABLES: u32 = 4;
/// In the pool, core instances for each call in flight: beside the guest itself a component holds adapters, CPython a
/// dozen.
const CORE_INSTANCES: u32 = 16;

/// What holds however memories come about.
pub(super) fn base() -> Config {
    let mut config = Config::new();
    config
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

/// Wasmtime's pool: memories that share an image of their component's data, and that the kernel empties after each call.
pub(super) fn pooled(calls: u32, pagemap_scan: bool) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES))
        .total_memories(calls)
        .total_tables(calls.saturating_mul(TABLES))
        .total_stacks(calls)
        .max_tables_per_module(8)
        .table_elements(TABLE_ELEMENTS)
        .async_stack_keep_resident(STACK_KEPT)
        .table_keep_resident(TABLE_KEPT);
    if pagemap_scan {
        // The scan resets only pages that the kernel reports as present. One that is swapped out or being migrated
        // keeps its data for the slot's next call, so that it is the operator's choice and off unless he makes it.
        pool.pagemap_scan(Enabled::Auto)
            .linear_memory_keep_resident(POOL_MEMORY_KEPT);
    } else {
        pool.pagemap_scan(Enabled::No);
    }
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

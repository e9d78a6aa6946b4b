//! What this machine allows: how many calls can be in flight at once, and what holds them down.

use std::fmt;

use super::settings::{ADDRESSES, FEWEST_CALLS, IDLE_CALL, MAPS, MOST_CALLS, OTHER_MAPS};

/// How many calls can be in flight at once, and why not more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// A further call waits its turn.
    pub calls: u32,
    /// What bounds it.
    pub bound: Bound,
}

/// What bounds the number of calls in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// No machine gets more.
    Host,
    /// `vm.max_map_count`, with its value.
    Maps(u64),
    /// The memory, in bytes: of the machine, or of the control group that the process runs in.
    Memory(u64),
    /// The limit of the process on its address space (`ulimit -v`), in bytes.
    Addresses(u64),
}

impl fmt::Display for Bound {
    /// For a person: what bounds it, and what would allow more.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => write!(f, "as many as any machine gets"),
            Self::Maps(maps) => {
                let enough = u64::from(MOST_CALLS) * MAPS + OTHER_MAPS;
                write!(
                    f,
                    "vm.max_map_count is {maps}; `sysctl vm.max_map_count={enough}` would allow {MOST_CALLS}"
                )
            }
            Self::Memory(bytes) => write!(
                f,
                "half of the memory, {} MiB, is for calls, {} KiB for each; more memory would allow more, swap would not",
                bytes >> 20,
                IDLE_CALL >> 10
            ),
            Self::Addresses(bytes) => write!(
                f,
                "the address space of a process is limited to {} MiB; `ulimit -v unlimited` would allow more",
                bytes >> 20
            ),
        }
    }
}

/// What the system says of itself; absent where it does not say.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Machine {
    pub(super) maps: Option<u64>,
    pub(super) memory: Option<u64>,
    pub(super) addresses: Option<u64>,
}

impl Machine {
    pub(super) fn this() -> Self {
        Self {
            maps: read_number("/proc/sys/vm/max_map_count"),
            memory: total_memory().into_iter().chain(group_memory()).min(),
            addresses: addresses(),
        }
    }

    pub(super) fn capacity(self) -> Capacity {
        let bounds = [
            (u64::from(MOST_CALLS), Bound::Host),
            (
                self.maps
                    .map_or(u64::MAX, |maps| maps.saturating_sub(OTHER_MAPS) / MAPS),
                Bound::Maps(self.maps.unwrap_or_default()),
            ),
            // Half of the memory, so that as many calls leave room for what the guests themselves allocate.
            (
                self.memory.map_or(u64::MAX, |bytes| bytes / 2 / IDLE_CALL),
                Bound::Memory(self.memory.unwrap_or_default()),
            ),
            // Half of the addresses, since code, heap and threads take some too.
            (
                self.addresses.map_or(u64::MAX, |bytes| bytes / 2 / ADDRESSES),
                Bound::Addresses(self.addresses.unwrap_or_default()),
            ),
        ];
        let (calls, bound) = bounds
            .into_iter()
            .min_by_key(|(calls, _)| *calls)
            .unwrap_or((0, Bound::Host));
        // Addresses are the one thing that a call cannot do without: more calls than there are addresses for would fail.
        let fewest = if matches!(bound, Bound::Addresses(_)) {
            1
        } else {
            FEWEST_CALLS
        };
        let calls = u32::try_from(calls).unwrap_or(MOST_CALLS).max(fewest);
        Capacity { calls, bound }
    }
}

fn read_number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// In bytes. Swap is left out: a host whose guests are swapped is slower than one whose calls wait.
fn total_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kib.checked_mul(1_024)
}

/// What the control group of this process may use (a container's limit), in bytes; `max` is none.
fn group_memory() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    // A group's own file is the tightest that is looked at; what a group above allows less is rare, and costs speed alone.
    read_number(&format!("/sys/fs/cgroup{own}/memory.max")).or_else(|| read_number("/sys/fs/cgroup/memory.max"))
}

#[cfg(unix)]
fn addresses() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

#[cfg(not(unix))]
fn addresses() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_thing_bounds_the_calls_in_flight_and_is_named() {
        let plenty = Machine::default();
        assert_eq!(plenty.capacity().bound, Bound::Host);
        assert_eq!(plenty.capacity().calls, MOST_CALLS);
        let few_maps = Machine {
            maps: Some(16_000),
            ..plenty
        };
        assert_eq!(few_maps.capacity().bound, Bound::Maps(16_000));
        assert_eq!(u64::from(few_maps.capacity().calls), (16_000 - OTHER_MAPS) / MAPS);
        let small = Machine {
            memory: Some(64 << 20),
            ..few_maps
        };
        assert_eq!(small.capacity().bound, Bound::Memory(64 << 20));
        assert_eq!(u64::from(small.capacity().calls), (32 << 20) / IDLE_CALL);
        let narrow = Machine {
            addresses: Some(1 << 30),
            ..small
        };
        assert_eq!(narrow.capacity().bound, Bound::Addresses(1 << 30));
        assert_eq!(narrow.capacity().calls, 1);
        let tiny = Machine {
            memory: Some(1 << 20),
            ..plenty
        };
        assert_eq!(tiny.capacity().calls, FEWEST_CALLS);
    }

    #[test]
    fn a_bound_says_what_would_allow_more() {
        let said = Bound::Maps(16_000).to_string();
        assert!(said.contains("is 16000; `sysctl vm.max_map_count=56000`"), "{said}");
        let enough = Machine {
            maps: Some(56_000),
            ..Machine::default()
        };
        assert_eq!(enough.capacity().calls, MOST_CALLS);
        assert!(Bound::Memory(64 << 20).to_string().contains("64 MiB"));
        assert!(Bound::Addresses(8 << 30).to_string().contains("ulimit -v"));
    }

    #[test]
    fn this_machine_says_something_of_itself() {
        assert!(Machine::this().capacity().calls >= FEWEST_CALLS);
        #[cfg(target_os = "linux")]
        assert!(Machine::this().maps.is_some() && Machine::this().memory.is_some());
    }
}

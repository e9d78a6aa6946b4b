// Every trick, by the name of its file. The guests and their tests are both made from these lists, so that a trick
// without a test does not compile.

/// Tools of `tricks`.
#[allow(unused_macros)]
macro_rules! every_trick {
    ($($then:tt)*) => {
        $($then)*! {
            // Time and memory.
            spin
            recurse
            overflow_stack
            grow_memory
            sleep_forever
            poll_for_ever
            hold_handles
            huge_arguments
            huge_output
            huge_error
            huge_random
            many_parts
            say_anything
            // Crashes.
            panic_with_words
            exit_zero
            exit_one
            run_into_unreachable
            // What it says.
            log_flood
            progress_flood
            stderr_flood
            forge_audit
            terminal_escapes
            bad_structured
            deep_structured
            bad_media_type
            // What it learns and keeps.
            host_secrets
            read_stdin
            start_thread
            forge_handle
            remember
            // Files.
            climb_out
            name_absolute
            follow_links
            make_links
            make_hard_link
            open_special
            look_into_proc
            race_a_rename
            odd_names
            many_entries
            huge_file
            write_what_is_read_only
            write_protected
            move_protected
            borrow_rights
            leave_by_rename
        }
    };
}

/// Tools of `egress`.
#[allow(unused_macros)]
macro_rules! every_request {
    ($($then:tt)*) => {
        $($then)*! {
            unlisted_origin
            same_host_otherwise
            odd_addresses
            metadata
            userinfo_and_zone
            private_name
            forbidden_headers
            smuggle
            follow_redirect
            downgrade
            huge_request
            huge_response
            endless_response
            many_headers
            many_requests
            override_secret
            reflect_secret
        }
    };
}

/// What `listing` does when it is asked for its tools.
#[allow(unused_macros)]
macro_rules! every_listing {
    ($($then:tt)*) => {
        $($then)*! {
            traps
            spins
            exits
            reads_files
            differs
            too_many
            too_large
            twice
            control_names
            reserved_name
            blank_description
            huge_schema
            deep_schema
            recursive_schema
            remote_schema
            slow_pattern
        }
    };
}

/// Examples of `imports`.
#[allow(unused_macros)]
macro_rules! every_import {
    ($($then:tt)*) => {
        $($then)*! {
            sockets
            name_lookup
            unknown
            toolbox
            person
        }
    };
}

/// Core modules of `wat`, for what Rust cannot say.
#[allow(unused_macros)]
macro_rules! every_module {
    ($($then:tt)*) => {
        $($then)*! {
            grow_table
            keep_state
            newer_wasi
        }
    };
}

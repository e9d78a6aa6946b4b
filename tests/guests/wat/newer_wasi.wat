;; Was built for a newer WASI, of which it imports what this host does not have.
(import "wasi:random/random@0.2.99" "get-true-random-u64" (func $random (result i64)))
(func $call (param i32 i32 i32 i32) (result i32)
  (drop (call $random))
  (call $ok (i32.const 1024) (i32.const 3)))

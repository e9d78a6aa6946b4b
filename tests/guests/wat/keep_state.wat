;; Leaves word for the next call in a global, in a table and in memory that no allocator knows.
(global $word (mut i32) (i32.const 0))
(elem declare func $call)
(data (i32.const 1130) "broke isolation")
(func $call (param i32 i32 i32 i32) (result i32)
  (if (i32.or
        (i32.or (global.get $word) (i32.eqz (ref.is_null (table.get $table (i32.const 0)))))
        (i32.load (i32.const 60000)))
    (then (return (call $ok (i32.const 1130) (i32.const 15)))))
  (global.set $word (i32.const 1))
  (table.set $table (i32.const 0) (ref.func $call))
  (i32.store (i32.const 60000) (i32.const 1))
  (call $ok (i32.const 1024) (i32.const 3)))

;; Leaves word for the next call in globals, in a table and its size, in memory that no allocator knows and its size.
(global $word (mut i32) (i32.const 0))
(global $long (mut i64) (i64.const 0))
(global $held (mut funcref) (ref.null func))
(elem declare func $call)
(data (i32.const 1130) "broke isolation")
(func $call (param i32 i32 i32 i32) (result i32)
  (if (i32.or
        (i32.or (global.get $word) (i32.eqz (ref.is_null (table.get $table (i32.const 0)))))
        (i32.or
          (i32.or (i32.load (i32.const 60000)) (i32.ne (memory.size) (i32.const 1)))
          (i32.or
            (i32.or (i32.ne (table.size $table) (i32.const 1)) (i64.ne (global.get $long) (i64.const 0)))
            (i32.eqz (ref.is_null (global.get $held))))))
    (then (return (call $ok (i32.const 1130) (i32.const 15)))))
  (global.set $word (i32.const 1))
  (global.set $long (i64.const -1))
  (global.set $held (ref.func $call))
  (if (i32.or
        (i32.eq (table.grow $table (ref.func $call) (i32.const 50)) (i32.const -1))
        (i32.eq (memory.grow (i32.const 3)) (i32.const -1)))
    (then unreachable))
  ;; What was grown is as new, too.
  (if (i32.load (i32.const 200000))
    (then (return (call $ok (i32.const 1130) (i32.const 15)))))
  (i32.store (i32.const 200000) (i32.const 1))
  (table.set $table (i32.const 0) (ref.func $call))
  (i32.store (i32.const 60000) (i32.const 1))
  (call $ok (i32.const 1024) (i32.const 3)))

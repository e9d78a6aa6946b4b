;; Grows its table until it may not.
(func $call (param i32 i32 i32 i32) (result i32)
  (loop $more
    (br_if $more (i32.ne (table.grow $table (ref.null func) (i32.const 100)) (i32.const -1))))
  unreachable)

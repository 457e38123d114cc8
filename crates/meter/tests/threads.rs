//! Bytes that threads count for themselves are not lost when the threads end.

#[global_allocator]
static ALLOCATOR: consistory_meter::CountingAllocator = consistory_meter::CountingAllocator;

fn allocated() -> i64 {
    i64::try_from(consistory_meter::allocated()).unwrap()
}

#[test]
fn nothing_is_lost_when_threads_end() {
    // Bytes that running threads have not added yet, and allocations of the test program itself.
    const TOLERANCE: i64 = 128 << 10;
    let before = allocated();
    for _ in 0..2000 {
        // The table is allocated by one thread and freed by another.
        let table = std::thread::spawn(|| vec![1_u8; 5000]).join().unwrap();
        assert_eq!(table.len(), 5000);
    }
    let after = allocated();
    assert!((after - before).abs() < TOLERANCE, "{before} bytes before, {after} after");
    let large = vec![0_u8; 1 << 20];
    assert!(allocated() - after >= 1 << 20);
    drop(large);
    assert!((allocated() - after).abs() < TOLERANCE);
}

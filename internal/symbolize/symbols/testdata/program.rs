// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

use std::collections::HashMap;

fn even(values: &[u64]) -> u64 {
    values.iter().map(|v| v.wrapping_mul(3)).filter(|v| v % 2 == 0).sum()
}

fn main() {
    let mut lengths: HashMap<String, Vec<u64>> = HashMap::new();
    for (i, argument) in std::env::args().enumerate() {
        lengths.entry(argument).or_default().push(i as u64);
    }
    let mut sums: Vec<u64> = lengths.values().map(|v| even(v)).collect();
    sums.sort_by(|a, b| b.cmp(a));
    println!("{:?}", sums);
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Built by g++ 12, in /src: g++ -g -O2 -fno-omit-frame-pointer -Wl,--build-id=sha1 -o program program.cc
#line 1
#include <cstdlib>

struct Tree {
  int depth;
  __attribute__((noipa)) int leaf(int x) {
    volatile int sum = 0;
    for (int i = 0; i < 100; i++) sum += i * x;
    return sum * depth;
  }
};

static inline int twice(Tree& t, int x) { return 2 * t.leaf(x); }

__attribute__((noipa)) int walk(Tree& t, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += twice(t, i);
  return sum;
}

__attribute__((noipa)) int* keep(int n) {
  int* all = static_cast<int*>(calloc(n, sizeof(int)));
  all[0] = n;
  return all;
}

int main(int argc, char** argv) {
  Tree t{argc};
  int* all = keep(1 << 18);
  for (int i = 0; i < 1000; i++) all[i] = walk(t, 5000);
  return all[999] & 1;
}

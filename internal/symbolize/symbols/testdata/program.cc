// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <vector>

static inline int square(int x) { return x * x; }

static inline int sum_of_squares(const std::vector<int>& v) {
  int sum = 0;
  for (int x : v) sum += square(x);
  return sum;
}

struct Base {
  virtual ~Base() {}
  virtual int value(int x) { return square(x) + 1; }
};

template <class T>
__attribute__((noinline)) T total(const std::vector<T>& v) {
  return sum_of_squares(v) + std::count_if(v.begin(), v.end(), [](T x) { return square(x) % 2 == 0; });
}

__attribute__((always_inline)) static inline int cube(int x) { return x * square(x); }

// DWARF has the code of the lambda inside of the lambda's type.
template <class F>
__attribute__((always_inline)) static inline int twice(int x, F f) { return f(x) + f(x + 1); }

template <class T>
__attribute__((noinline)) int nested(T x) {
  return twice(x, [](int y) { return cube(y) + twice(y, [](int z) { return cube(z); }); });
}

int main(int argc, char** argv) {
  std::vector<int> v;
  for (int i = 0; i < argc * 100; i++) v.push_back(i ^ 7);
  std::sort(v.begin(), v.end(), [](int a, int b) { return square(a) % 7 < square(b) % 7; });
  Base base;
  std::string text;
  for (int i = 0; i < argc; i++) text += argv[i];
  return total(v) + nested<int>(argc) + base.value(argc) + text.size();
}

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

int main(int argc, char** argv) {
  std::vector<int> v;
  for (int i = 0; i < argc * 100; i++) v.push_back(i ^ 7);
  std::sort(v.begin(), v.end(), [](int a, int b) { return square(a) % 7 < square(b) % 7; });
  Base base;
  std::string text;
  for (int i = 0; i < argc; i++) text += argv[i];
  return total(v) + base.value(argc) + text.size();
}

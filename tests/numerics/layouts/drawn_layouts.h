// Recipes drawn at random: what is trained, and on which layout. Every axis of every module and every feature may meet
// every other, so many of them are invalid.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "tests/numerics/layouts.h"

namespace planwright::testing {

class LayoutDraw {
 public:
  explicit LayoutDraw(uint64_t seed) : random_(seed) {}

  // The next layout, and how many ranks it has. The same ones for the same seed. It has no name.
  Layout Next();
  int ranks() const { return ranks_; }

 private:
  // Without std::uniform_int_distribution, whose results depend on the library.
  int Pick(std::initializer_list<int> choices) { return choices.begin()[random_() % choices.size()]; }
  bool Chance(int in_hundred) { return static_cast<int>(random_() % 100) < in_hundred; }

  void Train(int encoders);
  void Place(int encoders);
  // Returns the rank behind the module.
  int AddModule(const std::string& name, bool language, int first_rank);

  std::mt19937_64 random_;
  std::vector<std::string> training_, overrides_;
  int ranks_ = 0;
};

}  // namespace planwright::testing

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

enum class DrawnFamily {
  kHybrid,   // Mamba-2, attention, experts and dense layers
  kDecoder,  // Llama, Qwen3 and Qwen3-MoE
};

class LayoutDraw {
 public:
  explicit LayoutDraw(uint64_t seed, DrawnFamily family = DrawnFamily::kHybrid) : random_(seed), family_(family) {}

  // The next layout, and how many ranks it has. The same ones for the same seed. It has no name.
  Layout Next();
  int ranks() const { return ranks_; }

 private:
  // Without std::uniform_int_distribution, whose results depend on the library.
  int Pick(std::initializer_list<int> choices) { return choices.begin()[random_() % choices.size()]; }
  bool Chance(int in_hundred) { return static_cast<int>(random_() % 100) < in_hundred; }

  void Train(const std::string& text) { training_.push_back(text); }
  // What is trained. Returns how many encoders there are.
  int Hybrid(Layout& layout);
  int Decoder(Layout& layout);
  void Rope();
  void Experts();
  void Batch();
  void Encoders(int encoders);
  void Place(int encoders);
  // Returns the rank behind the module.
  int AddModule(const std::string& name, bool language, int first_rank);

  std::mt19937_64 random_;
  DrawnFamily family_;
  std::vector<std::string> training_, overrides_;
  int ranks_ = 0;
  bool experts_ = false, tied_ = false;  // of the language model
};

// Rates by part of such recipes: one to four parts, by modules, parts of encoders and published names, also of
// parameters that share a storage with others. Many match nothing in a recipe, or nothing that is left.
class PartsDraw {
 public:
  explicit PartsDraw(uint64_t seed) : random_(seed ^ 0x5eedf00dULL) {}

  bool Wanted() { return random_() % 4 != 0; }
  std::string Next();  // an override

 private:
  std::mt19937_64 random_;
};

}  // namespace planwright::testing

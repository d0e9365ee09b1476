// What the parts of a module cost on a layout: each kind of layer, the embedding and the head, forward and backward.
// They are found once for each layout, in a plan of the recipe with one layer of each kind, in which all other modules
// are as small as can be. So every block, every time and every byte is the planner's own.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/predict/rates/rates.h"
#include "planner/search/candidate.h"
#include "planner/search/pass.h"
#include "planner/search/whole_step.h"

namespace planwright {

// Trained weights of one rank whose gradients are reduced alike (compile/model/assign_buckets.h).
struct GradientClass {
  View view = View::kDense;
  TpGradient tp = TpGradient::kSharded;
  auto operator<=>(const GradientClass&) const = default;
};

struct PieceCost {
  Pass forward;
  std::optional<Pass> backward;              // with what it computes again
  int64_t out = 0;                           // bytes that the forward hands on
  std::map<GradientClass, int64_t> trained;  // elements of a rank
  int64_t untrained = 0;                     // bytes of a rank
  double products = 0;                       // seconds that its FLOPs alone take, forward and backward
};

struct ModuleCosts {
  PieceCost embed, head;
  std::map<char, PieceCost> layers;  // by letter
  int64_t communicators = 0;         // of the module's own groups, at least
};

class PieceCosts {
 public:
  // `rates`: with the whole profile. Keeps references.
  PieceCosts(const TunedRecipe& tuned, const Rates& rates) : tuned_(tuned), rates_(rates) {}

  // Of a module whose lanes have so many samples of a microbatch, at most; `first_rank`: of the stage, within its node.
  // Null: no such plan can be made, and nothing is known. Placing, pp, stages and dp of the choice do not matter.
  const ModuleCosts* Of(size_t module, const ModuleChoice& choice, int64_t samples, int64_t first_rank);

  int64_t plans() const { return plans_; }  // that were made

 private:
  using Key =
      std::tuple<size_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, std::string, bool, std::string_view>;

  // `recompute`: the word for all layers (MiniRecipe), a constant.
  const ModuleCosts* Find(size_t module, const ModuleChoice& choice, std::string_view recompute, int64_t samples,
                          int64_t first_rank);

  const TunedRecipe& tuned_;
  const Rates& rates_;
  std::map<Key, std::unique_ptr<ModuleCosts>> found_;
  std::map<std::pair<Key, std::vector<std::string>>, std::unique_ptr<ModuleCosts>> mixed_;
  int64_t plans_ = 0;
};

}  // namespace planwright

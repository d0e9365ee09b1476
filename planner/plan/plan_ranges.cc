#include "planner/plan/plan_ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "planner/plan/limits.h"
#include "planner/plan/plan_fields.h"

namespace planwright {
namespace {

// Of all `sizes`, or more than kMostElements.
int64_t Times(int64_t elements, const std::vector<int64_t>& sizes) {
  for (int64_t size : sizes) {
    if (size < 1 || __builtin_mul_overflow(elements, size, &elements)) return kMostElements + 1;
    elements = std::min(elements, kMostElements + 1);
  }
  return elements;
}

// Adds up what is not negative; whether it is too much.
class Sum {
 public:
  bool Exceeds(int64_t part) {
    if (part < 0 || part > kMostElements - sum_) return true;
    sum_ += part;
    return false;
  }

 private:
  int64_t sum_ = 0;
};

bool Outside(int64_t value, int64_t most) { return value < 0 || value > most; }

// Numbers that are not finite are in no range.
bool FromZero(double value) { return value >= 0 && std::isfinite(value); }
bool AboveZero(double value) { return value > 0 && std::isfinite(value); }
bool BelowOne(double value) { return value >= 0 && value < 1; }

// Numbers whose range plan_fields.h says.
class NumberCheck {
 public:
  static constexpr bool kFills = false;
  explicit NumberCheck(std::string part) : part_(std::move(part)) {}

  template <typename T>
  void operator()(const char* key, const FieldTraits& of, const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      if (of.range == NumberRange::kFromZero && !FromZero(value)) Add(key, "below zero");
      if (of.range == NumberRange::kAboveZero && !AboveZero(value)) Add(key, "not above zero");
      if (of.range == NumberRange::kBelowOne && !BelowOne(value)) Add(key, "not in [0, 1)");
    }
  }
  template <typename T>
  void Omittable(const char* key, const FieldTraits& of, const T& value, const std::type_identity_t<T>&) {
    (*this)(key, of, value);
  }
  template <typename T>
  void OutsideDigest(const char*, const T&, const std::type_identity_t<T>&) {}

  std::string problem;

 private:
  void Add(const char* key, const char* what) {
    if (problem.empty()) problem = std::string("a number that is ") + what + ": " + part_ + "." + key;
  }

  const std::string part_;
};

template <typename T>
std::string NumberProblem(const std::string& name, const T& part) {
  NumberCheck check(name);
  Describe(check, part);
  return check.problem;
}

// None is -1.
bool IsToken(int64_t token, int64_t vocabulary) { return token >= -1 && token < std::max<int64_t>(vocabulary, 0); }

// Parts that rules look at all for each.
std::string CountProblem(const Plan& plan) {
  int64_t layers = 0, stages = 0, buckets = 0;
  for (const Module& module : plan.modules) {
    layers += static_cast<int64_t>(module.layers.size());
    stages += module.grid.pp;
    buckets += static_cast<int64_t>(module.buckets.size());
  }
  if (layers > kMostLayers || stages > kMostStages || buckets > kMostBuckets)
    return "more layers, stages or buckets than any plan has";
  for (const Role& role : plan.roles) {
    if (role.modules.size() > kMostModules) return "more modules than any plan has, in role " + role.name;
  }
  return "";
}

}  // namespace

std::string RangeProblem(const RankRange& range) {
  if (range.count < 1 || range.stride < 1) return "count and stride must be at least 1";
  const bool inside = range.first >= 0 && range.first + (range.count - int64_t{1}) * range.stride < kMostRanks;
  return inside ? "" : "ranks outside any world";
}

std::string RangeProblem(const Grid& grid) {
  for (int size : {grid.tp, grid.cp, grid.dp, grid.pp, grid.expert_tp, grid.ep, grid.expert_dp}) {
    if (size < 1) return "sizes of axes must be at least 1";
  }
  for (View view : {View::kDense, View::kExpert}) {
    int64_t ranks = 1;
    for (Axis axis : AxesOf(view)) ranks = std::min(ranks * grid.size(axis), kMostRanks + 1);
    if (grid.first_rank < 0 || grid.first_rank + ranks > kMostRanks) return "ranks outside any world";
  }
  return "";
}

std::string RangeProblem(const Cluster& cluster) {
  return cluster.nodes < 1 || cluster.gpus_per_node < 1 ? "nodes and gpus_per_node must be at least 1" : "";
}

std::string RangeProblem(const LayerSummary& layer) {
  const bool outside = Outside(layer.parameters, kMostElements) || Outside(layer.forward_flops, kMostElements) ||
                       Outside(layer.mixing_flops, kMostElements);
  if (layer.stage < 0 || layer.expert_row < -1 || layer.expert_row >= static_cast<int>(kMostLayers))
    return "a stage or a row that no layer has";
  return outside ? "more parameters or FLOPs than any layer has" : "";
}

std::string RangeProblem(const Module& module) {
  Sum parameters, storages, buckets;
  for (const auto& [name, value] : module.constants) {
    const int64_t* integer = std::get_if<int64_t>(&value);
    const double* real = std::get_if<double>(&value);
    if ((integer && Outside(*integer, kMostElements)) || (real && !FromZero(*real)))
      return "a constant that no model has, " + name;
  }
  if (!FromZero(module.imbalance)) return "an imbalance that no routing has";
  for (const Parameter& parameter : module.parameters) {
    if (parameter.experts < 0 || parameters.Exceeds(Times(std::max<int64_t>(parameter.experts, 1), parameter.shape))) {
      return "parameters of more elements, or fewer, than any model has, at " + parameter.name;
    }
    Sum segments;
    if (!std::isfinite(parameter.init.a) || !std::isfinite(parameter.init.b))
      return "initial values that are no numbers, at " + parameter.name;
    for (int64_t segment : parameter.segments) {
      if (segments.Exceeds(segment)) return "segments outside any parameter, at " + parameter.name;
    }
  }
  for (const Storage& storage : module.storages) {
    if (Outside(storage.offset, kMostElements) || storages.Exceeds(Times(1, storage.shape))) {
      return "storages of more elements, or fewer, than any model has, at " + storage.frame + "." + storage.slot;
    }
  }
  for (const Bucket& bucket : module.buckets) {
    if (buckets.Exceeds(bucket.elements))
      return "buckets of more elements, or fewer, than any model has, at " + bucket.name;
  }
  return "";
}

std::string RangeProblem(const Transfer& transfer) {
  const bool ranks = Outside(transfer.from_rank, kMostRanks) || Outside(transfer.to_rank, kMostRanks);
  if (ranks) return "ranks outside any world";
  return Outside(transfer.first_sample, kMostSamples) || Outside(transfer.end_sample, kMostSamples)
             ? "samples outside any step"
             : "";
}

std::string RangeProblem(const ExchangePart& part) {
  return std::abs(int64_t{part.shift}) > kMostRanks ? "a shift outside any world" : "";
}

std::string RangeProblem(const Budget& budget) {
  for (int64_t samples :
       {budget.train_samples, budget.global_samples, budget.steps, budget.samples_past_budget, budget.block_samples}) {
    if (Outside(samples, kMostSamples)) return "more samples or steps, or fewer, than any training has";
  }
  const bool microbatch = Outside(budget.micro_samples, kMostTokens) || Outside(budget.sequence_length, kMostTokens);
  return microbatch || Outside(budget.microbatches, kMostPassages) ? "microbatches that no step has" : "";
}

std::string RangeProblem(const DataPlan& data) {
  bool outside = Outside(data.patch, kMostTokens) || Outside(data.pixel_shuffle, kMostPixelShuffle) ||
                 Outside(data.max_image, kMostTokens) || Outside(data.max_images, kMostTokens) ||
                 Outside(data.text_tokens, kMostTokens);
  for (const auto& grid : data.image_grids) {
    outside = outside || grid.size() != 2 ||
              std::any_of(grid.begin(), grid.end(), [](int64_t size) { return size < 1 || size > kMostGridSide; });
  }
  if (outside) return "sizes that no image has";
  for (int64_t count : {data.seed, data.classes, data.window, data.min_patches, data.max_patches, data.vocabulary}) {
    if (Outside(count, kLargestNumber)) return "a seed or a count below zero";
  }
  for (int64_t token : {data.image_token, data.pad_token, data.end_token}) {
    if (!IsToken(token, data.vocabulary)) return "a token outside the vocabulary";
  }
  if (data.kind == "mock") {
    if (data.classes < 1 || data.text_tokens < 1) return "mock data of no class, or of no text";
    if (data.vocabulary < (data.image_token >= 0 ? 3 : 2)) return "mock data of a vocabulary that has no text";
    if (data.patch > 0 && data.max_images > 0 && data.image_grids.empty())
      return "mock data of images without their grids";
  }
  return "";
}

std::string RangeProblem(const LearningRate& rate) {
  if (std::string problem = NumberProblem("learning_rate", rate); !problem.empty()) return problem;
  const bool outside = !FromZero(rate.warmup_samples) || rate.warmup_samples > static_cast<double>(kMostSamples) ||
                       Outside(rate.decay_samples, kMostSamples) || Outside(rate.wsd_decay_samples, kMostSamples);
  return outside ? "more samples, or fewer, than any training has" : "";
}

std::string RangeProblem(const WeightDecay& decay) {
  if (std::string problem = NumberProblem("weight_decay", decay); !problem.empty()) return problem;
  return Outside(decay.samples, kMostSamples) ? "more samples, or fewer, than any training has" : "";
}

std::string RangeProblem(const OptimizerPlan& optimizer) { return NumberProblem("optimizer", optimizer); }

std::string RangeProblem(const Symbol& symbol) {
  if (Outside(symbol.maximum, kLargestDim)) return "more rows, or fewer, than any value has";
  return Outside(symbol.expected, kLargestDim) || Outside(symbol.mean, kLargestDim)
             ? "more rows, or fewer, than any value has"
             : "";
}

std::string RangeProblem(const Accumulator& sum) {
  return Outside(sum.elements, kMostElements) ? "more elements, or fewer, than any sum has" : "";
}

std::string RangeProblem(const CheckpointPlan& checkpoint) {
  return checkpoint.every_steps < 0 ? "steps below zero" : "";
}

std::string RangeProblem(const Plan& plan) {
  if (plan.precision != "bf16" && plan.precision != "fp32" && plan.precision != "fp64")
    return "no precision: \"" + plan.precision + "\"";
  if (Outside(plan.seed, kLargestNumber)) return "a seed below zero";
  if (plan.log_every_steps < 1) return "log_every_steps must be at least 1";
  if (plan.world_size < 1 || plan.world_size > kMostRanks) return "a world of no ranks, or of too many";
  if (std::string problem = CountProblem(plan); !problem.empty()) return problem;
  for (std::string problem : {RangeProblem(plan.budget.learning_rate), RangeProblem(plan.budget.weight_decay),
                              RangeProblem(plan.optimizer), RangeProblem(plan.data), RangeProblem(plan.checkpoint)}) {
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace planwright

#include "planner/plan/plan_ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <type_traits>
#include <utility>

#include "planner/base/text/limits.h"
#include "planner/plan/launch_environment.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/resize_words.h"
#include "planner/plan/sample_images.h"
#include "planner/plan/slurm_options.h"
#include "planner/plan/source_rules.h"

namespace planwright {
namespace {

// The product of `elements` and all sizes, cut off just above kMostElements. A size below 1 gives that number too.
int64_t BoundedProduct(int64_t elements, const std::vector<int64_t>& sizes) {
  for (int64_t size : sizes) {
    if (size < 1 || __builtin_mul_overflow(elements, size, &elements)) return kMostElements + 1;
    elements = std::min(elements, kMostElements + 1);
  }
  return elements;
}

// A sum that stays below kMostElements.
class BoundedSum {
 public:
  // Adds a part; true if the part is negative or the sum would be too large.
  bool Exceeds(int64_t part) {
    if (part < 0 || part > kMostElements - sum_) return true;
    sum_ += part;
    return false;
  }

 private:
  int64_t sum_ = 0;
};

bool Outside(int64_t value, int64_t most) { return value < 0 || value > most; }

// A visitor of plan_fields.h: checks the numbers whose range is given there.
class NumberCheck {
 public:
  static constexpr bool kFills = false;
  explicit NumberCheck(std::string part) : part_(std::move(part)) {}

  template <typename T>
  void operator()(const char* key, const FieldTraits& of, const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      if (problem.empty() && !of.range.Holds(value)) problem = "a number out of range: " + part_ + "." + key;
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
  const std::string part_;
};

template <typename T>
std::string NumberProblem(const std::string& name, const T& part) {
  NumberCheck check(name);
  Describe(check, part);
  return check.problem;
}

// A token id, or -1 for none.
bool IsToken(int64_t token, int64_t vocabulary) { return token >= -1 && token < std::max<int64_t>(vocabulary, 0); }

// Numbers of parts, which bound the time of rules that compare each with each.
std::string CountProblem(const Plan& plan) {
  int64_t layers = 0, stages = 0, buckets = 0;
  for (const Module& module : plan.modules) {
    layers += static_cast<int64_t>(module.layers.size());
    stages += module.grid.pp;
    buckets += static_cast<int64_t>(module.buckets.size());
  }
  if (layers > kMostLayers || stages > kMostStages || buckets > kMostBuckets)
    return "more layers, stages or buckets than a plan may have";
  for (const Role& role : plan.roles) {
    if (role.modules.size() > kMostModules) return "more modules than a plan may have, in role " + role.name;
  }
  return "";
}

}  // namespace

std::string RangeProblem(const RankRange& range) {
  if (range.count < 1 || range.stride < 1) return "count and stride must be at least 1";
  // In 64 bits: (count - 1) * stride of a damaged file may not fit an int.
  const bool inside = range.first >= 0 && range.first + (range.count - int64_t{1}) * range.stride < kMostRanks;
  return inside ? "" : "rank numbers out of range";
}

std::string RangeProblem(const Grid& grid) {
  for (int size : {grid.tp, grid.cp, grid.dp, grid.pp, grid.expert_tp, grid.ep, grid.expert_dp}) {
    if (size < 1) return "sizes of axes must be at least 1";
  }
  for (View view : {View::kDense, View::kExpert}) {
    int64_t ranks = 1;  // cut off after each factor: the product of all four could overflow
    for (Axis axis : AxesOf(view)) ranks = std::min(ranks * grid.size(axis), kMostRanks + 1);
    if (grid.first_rank < 0 || grid.first_rank + ranks > kMostRanks) return "rank numbers out of range";
  }
  return "";
}

std::string RangeProblem(const DeviceFigures& figures) { return NumberProblem("device", figures); }

std::string RangeProblem(const MeasuredTime& time) {
  if (std::string problem = NumberProblem("seconds", time); !problem.empty()) return problem;
  if (time.low > time.median || time.median > time.high) return "a median that is not between its quartiles";
  return time.repetitions < 1 ? "repetitions below 1" : "";
}

std::string RangeProblem(const MeasuredCompute& point) {
  if (std::string problem = NumberProblem("compute", point); !problem.empty()) return problem;
  if (point.ranks < 1) return "ranks below 1";
  return point.flops == 0 && point.bytes == 0 ? "neither flops nor bytes, so no rate" : "";
}

std::string RangeProblem(const MeasuredLaunch& point) { return point.ranks < 1 ? "ranks below 1" : ""; }

std::string RangeProblem(const MeasuredBeside& point) { return point.speed.high > 1 ? "a speed above 1" : ""; }

std::string RangeProblem(const MeasuredSkew& point) { return NumberProblem("skew", point); }

std::string RangeProblem(const ScaledUses& uses) {
  if (std::string problem = NumberProblem("scaled_by", uses); !problem.empty()) return problem;
  if (uses.low > uses.high) return "a low quartile above the high one";
  return uses.count < 1 ? "a count below 1" : "";
}

std::string RangeProblem(const MeasuredCommunication& point) {
  if (std::string problem = NumberProblem("communication", point); !problem.empty()) return problem;
  if (point.members < 2) return "fewer than 2 members";
  const bool tiles = point.per_node >= 1 && point.nodes >= 1 && point.per_node <= point.members &&
                     int64_t{point.per_node} * point.nodes >= point.members;
  return tiles ? "" : "members that do not fit on their nodes";
}

std::string RangeProblem(const Cluster& cluster) {
  if (std::string problem = NumberProblem("cluster", cluster); !problem.empty()) return problem;
  return cluster.nodes < 1 || cluster.gpus_per_node < 1 ? "nodes and gpus_per_node must be at least 1" : "";
}

std::string RangeProblem(const LayerSummary& layer) {
  const bool outside = Outside(layer.parameters, kMostElements) || Outside(layer.forward_flops, kMostElements) ||
                       Outside(layer.mixing_flops, kMostElements);
  if (layer.stage < 0 || layer.expert_row < -1 || layer.expert_row >= static_cast<int>(kMostLayers))
    return "a stage or an expert_row out of range";
  return outside ? "a number of parameters or FLOPs out of range" : "";
}

std::string RangeProblem(const Module& module) {
  BoundedSum parameters, storages, buckets;
  for (const auto& [name, value] : module.constants) {
    const int64_t* integer = std::get_if<int64_t>(&value);
    const double* real = std::get_if<double>(&value);
    if ((integer && Outside(*integer, kMostElements)) || (real && !kConstant.Holds(*real)))
      return "a constant out of range: " + name;
  }
  if (!kImbalance.OrZero().Holds(module.imbalance)) return "an imbalance out of range";
  for (const Parameter& parameter : module.parameters) {
    if (parameter.experts < 0 ||
        parameters.Exceeds(BoundedProduct(std::max<int64_t>(parameter.experts, 1), parameter.shape))) {
      return "a number of elements out of range, at parameter " + parameter.name;
    }
    BoundedSum segments;
    if (!kInitial.Holds(std::abs(parameter.init.a)) || !kInitial.Holds(std::abs(parameter.init.b)))
      return "initial values out of range, at parameter " + parameter.name;
    for (int64_t segment : parameter.segments) {
      if (segments.Exceeds(segment)) return "segments out of range, at parameter " + parameter.name;
    }
  }
  for (const Storage& storage : module.storages) {
    if (Outside(storage.offset, kMostElements) || storages.Exceeds(BoundedProduct(1, storage.shape))) {
      return "a number of elements out of range, at storage " + storage.frame + "." + storage.slot;
    }
  }
  for (const Bucket& bucket : module.buckets) {
    if (buckets.Exceeds(bucket.elements)) return "a number of elements out of range, at bucket " + bucket.name;
  }
  return "";
}

std::string RangeProblem(const Transfer& transfer) {
  const bool ranks = Outside(transfer.from_rank, kMostRanks) || Outside(transfer.to_rank, kMostRanks);
  if (ranks) return "rank numbers out of range";
  return Outside(transfer.first_sample, kMostSamples) || Outside(transfer.end_sample, kMostSamples)
             ? "sample numbers out of range"
             : "";
}

std::string RangeProblem(const ExchangePart& part) {
  return std::abs(int64_t{part.shift}) > kMostRanks ? "a shift out of range" : "";
}

std::string RangeProblem(const Budget& budget) {
  for (int64_t samples :
       {budget.train_samples, budget.global_samples, budget.steps, budget.samples_past_budget, budget.block_samples}) {
    if (Outside(samples, kMostSamples)) return "a number of samples or steps out of range";
  }
  const bool microbatch = Outside(budget.micro_samples, kMostTokens) || Outside(budget.sequence_length, kMostTokens);
  return microbatch || Outside(budget.microbatches, kMostPassages)
             ? "micro_samples, sequence_length or microbatches out of range"
             : "";
}

namespace {

// "" if the counts of documents are of these sources, and can be. There are none where documents see each other, nor of
// what is evaluated.
std::string CountedDocumentsProblem(const DataPlan& data) {
  constexpr int64_t kMostSquares = kMostTokens * kMostTokens;  // of one document as long as its sample
  const CountedSamples& counted = data.counted;
  if (!data.packed_documents && !(counted.documents.empty() && counted.first_squares.empty()))
    return "counted documents of samples whose documents see each other";
  if (!counted.documents.empty() && counted.documents.size() != data.sources.size())
    return "counted documents of other sources";
  for (size_t i = 0; i < counted.documents.size(); ++i) {
    const CountedDocuments& one = counted.documents[i];
    if (one.source != data.sources[i].name) return "counted documents of other sources";
    if (one.samples < 1 || one.samples > kMostSamples || one.documents < one.samples ||
        one.documents > kLargestNumber || one.mean_squares < 1 || one.mean_squares > kMostSquares)
      return "a number of counted documents out of range";
  }
  for (const int64_t squares : counted.first_squares) {
    if (Outside(squares, kMostSquares)) return "a number of counted squares out of range";
  }
  return "";
}

// "" if the counts are of these encoders and sources, and can be.
std::string CountedProblem(const DataPlan& data) {
  const CountedSamples& counted = data.counted;
  if (!counted.known()) return counted == CountedSamples() ? "" : "counted samples without the digest of their index";
  if (counted.images.size() != data.encoders.size() * data.sources.size())
    return "counted images of other encoders or sources";
  size_t next = 0;
  for (const EncoderData& encoder : data.encoders) {
    for (const SourcePlan& source : data.sources) {
      const CountedImages& one = counted.images[next++];
      if (one.encoder != encoder.module || one.source != source.name)
        return "counted images of other encoders or sources";
      bool outside = one.samples < 1 || one.samples > kMostSamples || Outside(one.images, kMostSamples) ||
                     Outside(one.patches, kLargestNumber) || Outside(one.max_images, kMostTokens) ||
                     Outside(one.max_patches, kLargestNumber) || one.sizes.empty() != (one.images == 0) ||
                     one.sizes.size() > static_cast<size_t>(kMostImageSizes);
      for (const int64_t size : one.sizes) outside = outside || size < 1 || size > one.max_patches;
      if (outside) return "a number of counted images out of range";
    }
  }
  for (const int64_t patches : counted.first_patches) {
    if (Outside(patches, kLargestNumber)) return "a number of counted patches out of range";
  }
  return CountedDocumentsProblem(data);
}

}  // namespace

std::string RangeProblem(const DataPlan& data) {
  bool outside = Outside(data.max_images, kMostTokens) || Outside(data.min_images, data.max_images) ||
                 Outside(data.text_tokens, kMostTokens);
  for (const EncoderData& encoder : data.encoders) {
    outside = outside || encoder.patch < 1 || encoder.patch > kMostTokens || encoder.pixel_shuffle < 1 ||
              encoder.pixel_shuffle > kMostPixelShuffle || encoder.max_image < 1 || encoder.max_image > kMostTokens;
  }
  for (const auto& grid : data.image_grids) {
    outside = outside || grid.size() != 2 ||
              std::any_of(grid.begin(), grid.end(), [](int64_t size) { return size < 1 || size > kMostGridSide; });
  }
  if (outside) return "image sizes out of range";
  for (int64_t count : {data.seed, data.classes, data.window, data.min_patches, data.max_patches, data.vocabulary}) {
    if (Outside(count, kLargestNumber)) return "a seed or a count out of range";
  }
  for (int64_t token : {data.image_token, data.pad_token, data.end_token}) {
    if (!IsToken(token, data.vocabulary)) return "a token outside the vocabulary";
  }
  for (const EncoderData& encoder : data.encoders) {
    if (!IsToken(encoder.token, data.vocabulary)) return "a token outside the vocabulary";
  }
  if (!IsResizeWord(data.resize)) return "an unknown way to resize images";
  if (!IsGridWord(data.grid)) return "an unknown rule for grids of patches";
  if (data.orientation != "stored" && data.orientation != "exif") return "an unknown way to turn images";
  if (std::string problem = SourcesProblem(data); !problem.empty()) return problem;
  if (std::string problem = CountedProblem(data); !problem.empty()) return problem;
  if (RowOf(data.kind).drawn) {
    if (data.classes < 1 || data.text_tokens < 1) return "mock data without classes or without text";
    if (data.vocabulary < MockVocabulary(data)) return "a vocabulary that is too small for mock data";
    if (!data.encoders.empty() && data.max_images > 0 && data.image_grids.empty())
      return "mock data with images but without image_grids";
  }
  return "";
}

std::string RangeProblem(const EvaluationSet& set) {
  if (!IsSourceName(set.name)) return "an evaluation set whose name is no name";
  const int64_t fewest = RowOf(set.data.kind).indexed ? 0 : 1;
  if (set.samples < fewest || set.samples > kMostSamples || Outside(set.rounds, kMostSamples))
    return "a number of samples or rounds out of range, of evaluation set " + set.name;
  if (std::string problem = RangeProblem(set.data); !problem.empty()) return problem;
  return set.data.balance == "none" ? "" : "an evaluation set that is balanced: " + set.name;
}

std::string RangeProblem(const EvaluationPlan& evaluation) {
  if (evaluation.empty()) return evaluation.every_samples == 0 ? "" : "evaluations without sets";
  if (evaluation.every_samples < 1 || evaluation.every_samples > kMostSamples) return "every_samples out of range";
  if (evaluation.sets.size() > kMostEvaluationSets) return "more evaluation sets than a plan may have";
  std::set<std::string> names;
  for (const EvaluationSet& set : evaluation.sets) {
    if (std::string problem = RangeProblem(set); !problem.empty()) return problem;
    if (!names.insert(set.name).second) return "two evaluation sets with the name " + set.name;
  }
  return "";
}

std::string RangeProblem(const DivergencePlan& divergence) {
  if (divergence == DivergencePlan()) return "";
  if (std::string problem = NumberProblem("divergence", divergence); !problem.empty()) return problem;
  return divergence.window < 1 || divergence.window > kMostDivergenceWindow ? "a window out of range" : "";
}

std::string RangeProblem(const LearningRate& rate) {
  if (std::string problem = NumberProblem("learning_rate", rate); !problem.empty()) return problem;
  const bool outside = !kSampleCount.Holds(rate.warmup_samples) || Outside(rate.decay_samples, kMostSamples) ||
                       Outside(rate.wsd_decay_samples, kMostSamples);
  return outside ? "a number of samples out of range" : "";
}

std::string RangeProblem(const WeightDecay& decay) {
  if (std::string problem = NumberProblem("weight_decay", decay); !problem.empty()) return problem;
  return Outside(decay.samples, kMostSamples) ? "a number of samples out of range" : "";
}

std::string RangeProblem(const RatePart& part) {
  if (part.match.empty()) return "a part of rates without a match";
  return NumberProblem("parts", part);
}

std::string RangeProblem(const OptimizerPlan& optimizer) {
  if (std::string problem = NumberProblem("optimizer", optimizer); !problem.empty()) return problem;
  if (optimizer.parts.size() > kMostRateParts) return "more parts of rates than a plan may have";
  for (const RatePart& part : optimizer.parts) {
    if (std::string problem = RangeProblem(part); !problem.empty()) return problem;
  }
  return "";
}

std::string RangeProblem(const Symbol& symbol) {
  if (Outside(symbol.maximum, kLargestDim)) return "a number of rows out of range";
  return Outside(symbol.expected, kLargestDim) || Outside(symbol.mean, kLargestDim) ? "a number of rows out of range"
                                                                                    : "";
}

std::string RangeProblem(const Accumulator& sum) {
  return Outside(sum.elements, kMostElements) ? "a number of elements out of range" : "";
}

std::string RangeProblem(const CheckpointPlan& checkpoint) {
  for (const auto& [steps, name] :
       {std::pair(checkpoint.every_steps, "every_steps"), std::pair(checkpoint.keep_last, "keep_last"),
        std::pair(checkpoint.keep_every_steps, "keep_every_steps")}) {
    if (Outside(steps, kMostSamples)) return std::string(name) + " out of range";
  }
  if (checkpoint.copy_bytes < 0) return "copy_bytes below zero";
  return !checkpoint.keep_best.empty() && checkpoint.every_steps == 0 ? "keep_best without checkpoints" : "";
}

std::string RangeProblem(const InitializePlan& initialize) {
  if (initialize.schedule != "recipe" && initialize.schedule != "checkpoint") return "an unknown schedule";
  if (initialize.from.empty() == initialize.sources.empty()) return "not one of from and sources";
  if (initialize.sources.size() > 2 * kMostModules) return "more sources than parts of modules";
  for (const WeightSourcePlan& source : initialize.sources) {
    if (source.part.empty() || source.from.empty()) return "a source without for or from";
  }
  return initialize.sources.empty() || (!initialize.optimizer && initialize.schedule == "recipe")
             ? ""
             : "moments or counters without one checkpoint in from";
}

std::string RangeProblem(const Bridge& bridge) { return NumberProblem("bridge", bridge); }

std::string RangeProblem(const LaunchPlan& launch) {
  if (std::string problem = NumberProblem("launch", launch); !problem.empty()) return problem;
  // Which options a plan for GPUs gives by itself is known where its job is written.
  if (Outside(launch.restarts, kMostRestarts)) return "restarts out of range";
  if (Outside(launch.cpus_per_task, kMostCores)) return "cpus_per_task out of range";
  if (std::string problem = EnvironmentProblemOf(launch); !problem.empty()) return problem;
  return SlurmOptionsProblem(launch, /*on_gpus=*/false);
}

std::string RangeProblem(const Plan& plan) {
  if (plan.precision != "bf16" && plan.precision != "fp32" && plan.precision != "fp64")
    return "an unknown precision: \"" + plan.precision + "\"";
  if (Outside(plan.seed, kLargestNumber)) return "a seed out of range";
  if (plan.log_every_steps < 1 || plan.log_every_steps > kMostSamples) return "log_every_steps out of range";
  if (plan.world_size < 1 || plan.world_size > kMostRanks) return "a world_size out of range";
  if (std::string problem = CountProblem(plan); !problem.empty()) return problem;
  for (std::string problem : {RangeProblem(plan.budget.learning_rate), RangeProblem(plan.budget.weight_decay),
                              RangeProblem(plan.optimizer), RangeProblem(plan.data), RangeProblem(plan.evaluation),
                              RangeProblem(plan.divergence), RangeProblem(plan.checkpoint), RangeProblem(plan.cluster),
                              RangeProblem(plan.cluster.device), RangeProblem(plan.launch)}) {
    if (!problem.empty()) return problem;
  }
  for (const Bridge& bridge : plan.bridges) {
    if (std::string problem = RangeProblem(bridge); !problem.empty()) return problem;
  }
  const int parts = static_cast<int>(plan.optimizer.parts.size());
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      if (parameter.part < -1 || parameter.part >= parts)
        return "a part of rates that there is not, at parameter " + parameter.name;
    }
  }
  return "";
}

}  // namespace planwright

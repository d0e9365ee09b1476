// Plans with a random value in every field. The filler is a visitor of plan_fields.h, as the reader and the writer are,
// so a new field is tested without a change here.
#pragma once

#include <cmath>
#include <random>

#include "planner/plan/plan_fields.h"
#include "planner/plan/plan_ranges.h"

namespace planwright {

class RandomFill {
 public:
  static constexpr bool kFills = true;
  explicit RandomFill(std::mt19937& random) : random_(random) {}

  template <typename T>
  void operator()(const char* key, const FieldTraits& of, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (key == std::string_view("precision")) return void(value = "fp32");  // only a few words are allowed
    }
    if constexpr (std::is_same_v<T, double>) {
      if (!of.range.any()) return FillWithin(of.range, value);
    }
    Fill(value);
  }
  template <typename T>
  void Omittable(const char* key, const FieldTraits& of, T& value, const std::type_identity_t<T>& absent) {
    value = absent;
    // Three parts of rates in every plan, so that a parameter may be in any of them.
    if constexpr (std::is_same_v<T, std::vector<RatePart>>) {
      value.resize(3);
      for (RatePart& part : value) Fill(part);
      return;
    }
    if constexpr (std::is_same_v<T, int>) {
      if (key == std::string_view("part")) return void(value = static_cast<int>(Below(4)) - 1);
    }
    if (Below(4) == 0) return;
    if constexpr (std::is_same_v<T, std::string>) {  // these have one other word
      if (key == std::string_view("resize")) return void(value = "bicubic");
      if (key == std::string_view("grid")) return void(value = "round_half_even");
      if (key == std::string_view("orientation")) return void(value = "exif");
    }
    (*this)(key, of, value);
  }
  template <typename T>
  void OutsideDigest(const char* key, T& value, const std::type_identity_t<T>& absent) {
    Omittable(key, kChosen, value, absent);
  }

 private:
  int64_t Below(int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random_); }

  // Draws again until the values are in the ranges that the reader asks for.
  template <typename T>
  void Fill(T& value) {
    Describe(*this, value);
    if constexpr (requires { RangeProblem(value); }) {
      while (!RangeProblem(value).empty()) Describe(*this, value);
    }
  }
  // Half of the plans have sources. Their fields depend on each other, so that no draw would be valid.
  void Fill(DataPlan& value) {
    do {
      Describe(*this, value);
      value.balance = Below(2) == 0 ? "none" : "images";
      value.sources.clear();
      value.tokenizer = "bytes";
      value.counted = {};
      if (Below(2) == 0) FillSources(value);
      if (!value.sources.empty() && Below(2) == 0) FillCounted(value);
    } while (!RangeProblem(value).empty());
  }
  void Fill(EvaluationSet& value) {
    Fill(value.samples);
    Fill(value.rounds);
    Fill(value.data);
    value.data.balance = "none";
  }
  // Names differ, and there is a number of samples only beside sets.
  void Fill(EvaluationPlan& value) {
    value = {};
    for (int64_t i = Below(3); i > 0; --i) {
      Fill(value.sets.emplace_back());
      value.sets.back().name = "set." + std::to_string(i);
    }
    if (!value.empty()) Fill(value.every_samples);
  }
  void Fill(DivergencePlan& value) {
    value = {};
    if (Below(2) == 0) return;
    value = {Below(60) + 1, 1.5 + static_cast<double>(Below(9))};
  }
  void FillCounted(DataPlan& value) {
    value.counted.digest = std::string(64, 'c');
    for (const EncoderData& encoder : value.encoders) {
      for (const SourcePlan& source : value.sources) {
        CountedImages& one = value.counted.images.emplace_back();
        one.encoder = encoder.module, one.source = source.name;
        one.samples = Below(60) + 1, one.images = Below(3) * 7;
        if (one.images == 0) continue;
        one.patches = 900, one.max_images = Below(60), one.max_patches = 300;
        one.sizes = {Below(60) + 1, 200};
      }
    }
    for (int64_t i = Below(9); i > 0; --i) value.counted.first_patches.push_back(Below(60));
    if (!value.packed_documents) return;
    for (const SourcePlan& source : value.sources) {
      const int64_t samples = Below(60) + 1;
      value.counted.documents.push_back({source.name, samples, samples + Below(60), Below(900) + 1});
    }
    for (int64_t i = Below(9); i > 0; --i) value.counted.first_squares.push_back(Below(900));
  }
  void FillSources(DataPlan& value) {
    const bool ids = Below(2) == 0;
    value.kind = DataKind::kSources;
    value.tokenizer = ids ? "ids" : "bytes";
    for (int64_t i = Below(3); i >= 0; --i) {
      SourcePlan& source = value.sources.emplace_back();
      source.name = "source." + std::to_string(i);
      source.weight = i == 0 ? 1 : Below(100) + 1;
      source.kind = ids && Below(2) == 0 ? SourceKind::kTokens : SourceKind::kWebdataset;
      if (source.kind == SourceKind::kTokens) {
        source.path = "text";
        continue;
      }
      source.shards = {"a-{0..9}.tar", "b*.tar"};
      if (Below(2) == 0) source.ignore = {"json"};
    }
    value.vocabulary = std::max<int64_t>(value.vocabulary, 4);
    value.image_token = 1;
    value.pad_token = 2;
    value.end_token = 3;
    for (EncoderData& encoder : value.encoders) encoder.token = 1;
    value.tokenizer_digest = Below(2) == 0 ? "" : std::string(64, 'a');
    value.template_digest = Below(2) == 0 ? "" : std::string(64, '0');
    value.shuffle = Below(2) == 0 ? "none" : std::to_string(Below(60) + 1);
    value.packing = Below(2) == 0 ? "first_fit" : "none";
    value.long_documents = Below(2) == 0 ? "cut" : "skip";
    value.damaged = Below(2) == 0 ? "error" : "skip";
    value.window = Below(60) + 1;
    value.min_patches = Below(60) + 1;
    value.max_patches = value.min_patches + Below(60);
  }
  void Fill(bool& value) { value = Below(2); }
  void Fill(int& value) {
    value = static_cast<int>(Below(30)) + 1;
  }  // small, so that a grid of four such sizes is not too large a world
  void Fill(int64_t& value) { value = Below(60) + 1; }  // small enough for every field
  // Where no field has a range: within those of plan_ranges.cc, with many digits.
  void Fill(double& value) {
    value = std::ldexp(std::normal_distribution<double>()(random_), static_cast<int>(Below(30)) - 20);
  }
  // Of all sizes that the range has.
  void FillWithin(const NumberRange& range, double& value) {
    const double low = std::max(range.low, 1e-30);
    do {
      const double part = std::uniform_real_distribution<double>()(random_);
      value = range.or_zero && Below(4) == 0 ? 0 : low * std::pow(range.high / low, part);
    } while (!range.Holds(value));
  }
  void Fill(char& value) { value = "ME*-|V"[Below(6)]; }
  void Fill(std::string& value) {
    static constexpr const char* kWords[] = {"x",  "$reals.loss",       "\"quoted\"", "schön",
                                             "%b", "language.layers.3", "back\\slash"};
    value = kWords[Below(std::size(kWords))] + std::to_string(Below(100));
  }
  void Fill(Axis& value) { value = static_cast<Axis>(Below(7)); }
  void Fill(View& value) { value = static_cast<View>(Below(2)); }
  void Fill(OpKind& value) { value = static_cast<OpKind>(Below(static_cast<int>(OpKind::kLogEvaluation) + 1)); }
  void Fill(DType& value) { value = static_cast<DType>(Below(4)); }
  void Fill(TpGradient& value) { value = static_cast<TpGradient>(Below(3)); }
  void Fill(DataKind& value) { value = static_cast<DataKind>(Below(static_cast<int64_t>(DataKinds().size()))); }
  void Fill(SourceKind& value) { value = static_cast<SourceKind>(Below(static_cast<int64_t>(SourceKinds().size()))); }
  void Fill(Init::Kind& value) { value = static_cast<Init::Kind>(Below(6)); }
  void Fill(Layout& layout) {
    layout.clear();
    for (int64_t i = Below(3); i > 0; --i) {
      AxisLayout state{static_cast<AxisLayout::State>(Below(3)), 0};
      if (state.state == AxisLayout::State::kSharded) state.dim = static_cast<int>(Below(4));
      layout[static_cast<Axis>(Below(7))] = state;
    }
  }
  void Fill(ValueType& type) {
    type.dtype = static_cast<DType>(Below(4));
    type.dims.clear();
    for (int64_t i = Below(4); i > 0; --i) {
      if (Below(3) > 0)
        type.dims.emplace_back(Below(100000));
      else
        type.dims.emplace_back("rows." + std::to_string(Below(9)));
    }
    type.host = Below(2);
    Fill(type.layout);
    type.gradient.reset();
    if (Below(2)) Fill(type.gradient.emplace());
  }
  void Fill(Output& output) {
    Fill(output.name);
    Fill(output.type);
  }
  void Fill(Transfer& value) {
    Fill(value.from_rank);
    Fill(value.to_rank);
    Fill(value.first_sample);
    Fill(value.end_sample);
  }
  void Fill(Attribute& value) {
    switch (Below(4)) {
      case 0: return Fill(value.emplace<int64_t>());
      case 1: return Fill(value.emplace<double>());
      case 2: return Fill(value.emplace<std::string>());
      default: return Fill(value.emplace<std::vector<int64_t>>());
    }
  }
  template <typename T>
  void Fill(std::vector<T>& values) {
    values.resize(Below(4));
    for (T& value : values) Fill(value);
  }
  void Fill(Attributes& values) {
    for (int64_t i = Below(4); i > 0; --i) Fill(values["key" + std::to_string(i)]);
  }
  void Fill(std::optional<InitializePlan>& value) {
    if (Below(2)) Fill(value.emplace());
  }

  std::mt19937& random_;
};

}  // namespace planwright

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/digest/sha256.h"
#include "planner/base/text/bug.h"
#include "planner/plan/data_files.h"
#include "planner/plan/number_runs.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/value_type.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// Lists of a spread object that are written with one item on a line.
constexpr std::string_view kOneItemPerLine[] = {
    "symbols",  "accumulators", "groups",        "schedule", "origins", "layers",   "parameters", "storages", "buckets",
    "body",     "setup",        "resume",        "step",     "save",    "teardown", "evaluate",   "score",    "forward",
    "backward", "compute",      "communication", "launch",   "beside",  "skew",     "scaled_by"};

// Spread objects: they are written with one field on a line. All others are on one line.
template <typename T>
constexpr bool kIsSpread = std::is_same_v<T, Plan> || std::is_same_v<T, Module> || std::is_same_v<T, Bridge> ||
                           std::is_same_v<T, Block> || std::is_same_v<T, Role> || std::is_same_v<T, DeviceProfile>;

// A visitor of plan_fields.h that appends JSON to a text. A JSON tree would be simpler and slower: plans have a hundred
// thousand values, and `validate` writes each plan for its digest.
class Writer {
 public:
  static constexpr bool kFills = false;

  // `digest`: write only what the plan digest covers.
  Writer(bool digest, std::string& text) : digest_(digest), text_(text) {}

  // Writes the fields of an object. The state of the object around it is kept meanwhile.
  template <typename T>
  void Object(const T& value) {
    const bool outer_spread = spread_, outer_first = first_;
    spread_ = kIsSpread<T>;
    first_ = true;
    text_ += spread_ ? "{\n" : "{";
    if (spread_) indent_ += ' ';
    Describe(*this, value);
    if (spread_) indent_.pop_back();
    if (spread_) text_ += "\n" + indent_;
    text_ += '}';
    spread_ = outer_spread;
    first_ = outer_first;
  }

  template <typename T>
  void operator()(const char* key, FieldClass, const T& value) {
    Key(key);
    Value(value);
  }
  template <typename T>
  void operator()(const char* key, FieldClass, const std::vector<T>& values) {
    Key(key);
    if (spread_ && !values.empty() && (kIsSpread<T> || HasOneItemPerLine(key))) {
      OneItemPerLine(values);
    } else {
      Value(values);
    }
  }
  // Transfers are written as runs of rows [from rank, to rank, first sample, end sample].
  void operator()(const char* key, FieldClass field_class, const std::vector<Transfer>& transfers) {
    std::vector<NumberRow<4>> rows;
    rows.reserve(transfers.size());
    for (const Transfer& t : transfers) rows.push_back({t.from_rank, t.to_rank, t.first_sample, t.end_sample});
    (*this)(key, field_class, RunsOf(rows));
  }
  void operator()(const char* key, FieldClass field_class, const std::optional<InitializePlan>& value) {
    if (value) (*this)(key, field_class, *value);
  }
  template <typename T>
  void Omittable(const char* key, FieldClass field_class, const T& value, const std::type_identity_t<T>& absent) {
    if (!Same(value, absent)) (*this)(key, field_class, value);
  }
  template <typename T>
  void OutsideDigest(const char* key, const T& value, const std::type_identity_t<T>& absent) {
    if (!digest_) Omittable(key, FieldClass::kFree, value, absent);
  }

 private:
  static bool HasOneItemPerLine(std::string_view key) {
    return std::find(std::begin(kOneItemPerLine), std::end(kOneItemPerLine), key) != std::end(kOneItemPerLine);
  }

  // Whether a value is its default. Lists have the empty one as default, and not all list items compare.
  template <typename T>
  static bool Same(const T& value, const T& absent) {
    if constexpr (requires { value.empty(); } && !std::is_same_v<T, std::string>) {
      return value.empty() && absent.empty();
    } else {
      return value == absent;
    }
  }

  // Ends the field before, if there is one, and begins the next.
  void Key(const char* key) {
    if (!first_) text_ += spread_ ? ",\n" : ",";
    first_ = false;
    if (spread_) text_ += indent_;
    (text_ += '"') += key;
    text_ += spread_ ? "\": " : "\":";
  }

  template <typename T>
  void OneItemPerLine(const std::vector<T>& values) {
    text_ += "[\n";
    indent_ += ' ';
    for (const T& value : values) {
      if (&value != values.data()) text_ += ",\n";
      text_ += indent_;
      Value(value);
    }
    indent_.pop_back();
    text_ += "\n" + indent_ + "]";
  }

  template <typename T>
  void Value(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      text_ += value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, char>) {
      char digits[24];
      text_.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
    } else {
      Object(value);
    }
  }
  void Value(double value) {
    Require(std::isfinite(value), "a plan number is not finite");
    text_ += Json(value).dump();  // the shortest text that reads back as the same double, on every machine
  }
  void Value(std::string_view value) {
    const bool plain =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
    if (plain) {
      ((text_ += '"') += value) += '"';
    } else {  // a path may have bytes that are no UTF-8: they are replaced, not an error
      text_ += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }
  void Value(const std::string& value) { Value(std::string_view(value)); }
  void Value(char value) { Value(std::string_view(&value, 1)); }
  void Value(Axis value) { Value(AxisName(value)); }
  void Value(View value) { Value(ViewName(value)); }
  void Value(OpKind value) { Value(OpName(value)); }
  void Value(DType value) { Value(DTypeName(value)); }
  void Value(TpGradient value) { Value(TpGradientName(value)); }
  void Value(Init::Kind value) { Value(InitKindName(value)); }
  void Value(DataKind value) { Value(DataKindName(value)); }
  void Value(SourceKind value) { Value(SourceKindName(value)); }
  void Value(const Output& value) { Value(OutputText(value)); }
  // [first..., count, step...]; a run of one row: [first...]
  template <size_t N>
  void Value(const NumberRun<N>& run) {
    std::vector<int64_t> numbers(run.first.begin(), run.first.end());
    if (run.count > 1) {
      numbers.push_back(run.count);
      numbers.insert(numbers.end(), run.step.begin(), run.step.end());
    }
    Value(numbers);
  }
  // A list of numbers in which runs are lists: [3, [8, 4, 1], 20] is 3, 8, 9, 10, 11, 20.
  void Value(const std::vector<int>& values) {
    std::vector<NumberRow<1>> rows;
    rows.reserve(values.size());
    for (int value : values) rows.push_back({value});
    text_ += '[';
    bool first = true;
    for (const NumberRun<1>& run : RunsOf(rows)) {
      if (!std::exchange(first, false)) text_ += ',';
      run.count > 1 ? Value(run) : Value(run.first[0]);
    }
    text_ += ']';
  }
  void Value(const Attribute& value) {
    std::visit([&](const auto& held) { Value(held); }, value);
  }
  template <typename T>
  void Value(const std::vector<T>& values) {
    text_ += '[';
    for (const T& value : values) {
      if (&value != values.data()) text_ += ',';
      Value(value);
    }
    text_ += ']';
  }
  void Value(const Attributes& values) {
    text_ += '{';
    for (auto it = values.begin(); it != values.end(); ++it) {
      if (it != values.begin()) text_ += ',';
      Value(it->first);
      text_ += ':';
      Value(it->second);
    }
    text_ += '}';
  }

  const bool digest_;
  std::string& text_;
  std::string indent_;
  // Whether the object that is being written is spread, and whether no field of it is written yet.
  bool spread_ = true, first_ = true;
};

template <typename T>
std::string Canonical(const T& value, bool digest) {
  std::string text;
  Writer(digest, text).Object(value);
  text += "\n";
  return text;
}

}  // namespace

// By way of the text, so that there is one writer.
Json PlanToJson(const Plan& plan) { return Json::parse(WritePlan(plan)); }

Json CountedToJson(const CountedSamples& counted) { return Json::parse(Canonical(counted, false)); }

std::string WritePlan(const Plan& plan) { return Canonical(plan, false); }

std::string WriteProfile(const DeviceProfile& profile) { return Canonical(profile, false); }

std::string PlanDigest(const Plan& plan) { return Sha256Hex(Canonical(plan, true)); }

namespace {

// The folder of the files of a set, where a name of them is seen from it; else empty.
std::string FolderOfFiles(const DataPlan& data) {
  if (RowOf(data.kind).drawn) return "";
  const std::vector<std::string> files = FilesOfData(data);
  if (std::all_of(files.begin(), files.end(), [](const std::string& file) { return file.starts_with('/'); })) return "";
  std::error_code error;
  const std::filesystem::path base = std::filesystem::absolute(data.base.empty() ? "." : data.base, error);
  const std::filesystem::path whole = std::filesystem::weakly_canonical(base, error);
  return error ? base.lexically_normal().string() : whole.string();
}

}  // namespace

std::string SamplesDigest(const Plan& plan, const EvaluationSet& set) {
  const std::string folder = FolderOfFiles(set.data);
  return Sha256Hex(absl::StrCat(set.samples, " samples of ", plan.budget.sequence_length, " tokens",
                                RowOf(set.data.kind).drawn ? absl::StrCat(", task ", plan.data.seed) : "",
                                folder.empty() ? "" : absl::StrCat(", files in ", folder), "\n",
                                Canonical(set.data, true)));
}

}  // namespace planwright

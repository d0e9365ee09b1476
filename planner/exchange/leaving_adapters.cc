#include "planner/exchange/leaving_adapters.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/json/json_text.h"
#include "planner/exchange/convert.h"
#include "planner/exchange/expected_tensors.h"
#include "planner/exchange/from_checkpoint.h"
#include "planner/plan/shard_map.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/state/weights/adapter_folder.h"
#include "planner/state/weights/weight_files.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";

bool EndsWith(const std::string& name, std::string_view end) { return std::string_view(name).ends_with(end); }

std::string Without(const std::string& name, std::string_view end) { return name.substr(0, name.size() - end.size()); }

// All numbers of a tensor, which is small.
absl::StatusOr<std::vector<double>> NumbersOf(CheckpointReader& reader, LeavingTensor leaving) {
  const OutTensor tensor = FromCheckpoint(reader, std::move(leaving), DType::kFp64);
  std::vector<double> numbers(static_cast<size_t>(tensor.bytes) / sizeof(double));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(numbers));
  for (size_t first = 0; first < bytes.size(); first += static_cast<size_t>(kExportPiece)) {
    const size_t count = std::min(bytes.size() - first, static_cast<size_t>(kExportPiece));
    if (absl::Status read = tensor.read(static_cast<int64_t>(first), bytes.subspan(first, count)); !read.ok())
      return read;
  }
  return numbers;
}

// A product with what its adapter adds.
struct Merge {
  WeightFiles* source = nullptr;
  std::string name;  // in the source
  DType stored = DType::kBf16, dtype = DType::kBf16;
  int64_t rows = 0, columns = 0, rank = 0;
  double scale = 1;
  std::vector<double> a, b;

  absl::Status Read(int64_t first_byte, std::span<std::byte> to) const {
    const int64_t width = DTypeBytes(dtype), first = first_byte / width,
                  count = static_cast<int64_t>(to.size()) / width;
    std::vector<std::byte> read(static_cast<size_t>(count * DTypeBytes(stored)));
    if (absl::Status status = source->Read(name, {{0, first, count}}, read, ElementReader::Numbers::kFinite);
        !status.ok())
      return status;
    std::vector<double> numbers(static_cast<size_t>(count));
    ConvertNumbers(stored, read, DType::kFp64, std::as_writable_bytes(std::span(numbers)));
    for (int64_t at = 0; at < count;) {
      const int64_t row = (first + at) / columns, column = (first + at) % columns;
      const int64_t in_row = std::min(count - at, columns - column);
      for (int64_t r = 0; r < rank; ++r) {
        const double factor = scale * b[static_cast<size_t>(row * rank + r)];
        const double* from = a.data() + r * columns + column;
        double* sums = numbers.data() + at;
        for (int64_t i = 0; i < in_row; ++i) sums[i] += factor * from[i];
      }
      at += in_row;
    }
    ConvertNumbers(DType::kFp64, std::as_bytes(std::span(numbers)), dtype, to);
    const auto wrong = FirstNotFinite(dtype, to);
    if (!wrong) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("tensor ", name, ": element ", first + *wrong, " is too large for ",
                                                   std::string(DTypeName(dtype)), ": choose a wider --dtype"));
  }
};

// What PEFT refuses: fused kernels of Mamba read the weights themselves, and go past what is beside them.
bool IsMambaOutput(const LeavingAdapter& adapter) {
  return EndsWith(adapter.product, ".mixer.out_proj") && adapter.module->constants.contains("mamba.state");
}

}  // namespace

std::vector<LeavingAdapter> TakeAdapters(const RunModel& run, std::vector<LeavingTensor>& leaving) {
  std::vector<LeavingAdapter> adapters;
  std::map<std::string, size_t> by_product;
  std::vector<LeavingTensor> others;
  for (LeavingTensor& tensor : leaving) {
    const bool a = EndsWith(tensor.name, kA), b = EndsWith(tensor.name, kB);
    if (!a && !b) {
      others.push_back(std::move(tensor));
      continue;
    }
    const std::string product = Without(tensor.name, a ? kA : kB);
    const auto [at, added] = by_product.try_emplace(product, adapters.size());
    if (added) adapters.push_back({.product = product, .module = nullptr, .a = {}, .b = {}});
    LeavingAdapter& adapter = adapters[at->second];
    for (const Module* module : {run.encoder, run.language}) {
      if (module != nullptr && tensor.parts.front().key.starts_with(module->name + ".")) adapter.module = module;
    }
    (a ? adapter.a : adapter.b) = std::move(tensor);
  }
  leaving = std::move(others);
  return adapters;
}

PeftFolder PeftFolderOf(std::vector<LeavingAdapter> adapters, const std::string& base, CheckpointReader& reader,
                        DType dtype, Findings& findings) {
  PeftFolder folder;
  const Module& module = *adapters.front().module;
  std::set<std::string> modules, refused;
  for (LeavingAdapter& adapter : adapters) {
    modules.insert(adapter.module->name);
    if (IsMambaOutput(adapter)) refused.insert("mixer.out_proj");
    for (LeavingTensor* tensor : {&adapter.a, &adapter.b}) {
      tensor->name = kPeftPrefix + tensor->name;
      folder.tensors.push_back(FromCheckpoint(reader, std::move(*tensor), dtype));
    }
  }
  if (modules.size() > 1)
    findings.Problem("modules", absl::StrJoin(modules, ", "),
                     "have adapters, and a folder of PEFT has those of one: export them one by one with --module");
  for (const std::string& name : refused)
    findings.Problem("adapter.targets", name,
                     "has adapters that PEFT does not open, as fused kernels of Mamba go past them: merge them with "
                     "--like SOURCE");
  nlohmann::ordered_json named, task;
  if (!base.empty()) named = base;
  if (module.carries_loss) task = "CAUSAL_LM";
  nlohmann::ordered_json config = {{"alpha_pattern", nlohmann::ordered_json::object()},
                                   {"base_model_name_or_path", named},
                                   {"bias", "none"},
                                   {"fan_in_fan_out", false},
                                   {"inference_mode", true},
                                   {"init_lora_weights", true},
                                   {"lora_alpha", module.real(kAdapterAlpha)},
                                   {"lora_dropout", 0.0},
                                   {"modules_to_save", nullptr},
                                   {"peft_type", "LORA"},
                                   {"r", module.size(kAdapterRank)},
                                   {"rank_pattern", nlohmann::ordered_json::object()},
                                   {"target_modules", module.adapter_targets},
                                   {"task_type", task},
                                   {"use_dora", false},
                                   {"use_rslora", false}};
  folder.config = JsonText(config, 2) + "\n";
  return folder;
}

absl::StatusOr<std::vector<OutTensor>> MergedTensors(std::vector<LeavingAdapter> adapters, const ReadFolder& source,
                                                     CheckpointReader& reader, DType dtype, Findings& findings) {
  std::vector<OutTensor> merged;
  for (LeavingAdapter& adapter : adapters) {
    const std::string name = adapter.product + ".weight";
    const std::vector<int64_t> shape = {adapter.b.shape.front(), adapter.a.shape.back()};
    const auto found = source.weights->all().find(name);
    if (found == source.weights->all().end() || found->second.shape != shape || !ReadType(found->second.type)) {
      findings.Problem("tensor " + name, "",
                       absl::StrCat("is not in ", source.weights->path(), " as ", ShapeText(shape),
                                    " in a type that runs have, and an adapter stands on it"));
      continue;
    }
    auto merge = std::make_shared<Merge>();
    merge->source = source.weights.get();
    merge->name = name;
    merge->stored = *ReadType(found->second.type);
    merge->dtype = dtype;
    merge->rows = shape[0], merge->columns = shape[1], merge->rank = adapter.a.shape.front();
    merge->scale = adapter.module->real(kAdapterAlpha) / static_cast<double>(merge->rank);
    absl::StatusOr<std::vector<double>> a = NumbersOf(reader, std::move(adapter.a));
    if (!a.ok()) return a.status();
    absl::StatusOr<std::vector<double>> b = NumbersOf(reader, std::move(adapter.b));
    if (!b.ok()) return b.status();
    merge->a = *std::move(a), merge->b = *std::move(b);
    merged.push_back({name, SafetensorsTypeName(dtype), shape, shape[0] * shape[1] * DTypeBytes(dtype), true,
                      [merge](int64_t first, std::span<std::byte> to) { return merge->Read(first, to); }});
  }
  return merged;
}

}  // namespace planwright

// `plan export`: a checkpoint as a Hugging Face folder (docs/hugging_face.md#what-comes-home).

#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/exchange_text.h"
#include "planner/cli/progress_bar.h"
#include "planner/exchange/export_run.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

int ExportFailed(const absl::Status& status) {
  UsageError(PrintableLines(std::string(status.message())));
  return absl::IsDataLoss(status) ? kExitDamaged : kExitUsage;
}

// "5GB", "500MB", "2GiB" or a number of bytes.
absl::StatusOr<int64_t> ReadShardSize(const std::string& name, const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},     {"B", 1},     {"KB", 1e3},      {"kB", 1e3},      {"MB", 1e6},
      {"GB", 1e9}, {"TB", 1e12}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const auto& [word, bytes] : kUnits) {
    if (error == std::errc() && unit == word && number * bytes >= 1 && number * bytes < 1e18)
      return static_cast<int64_t>(number * bytes);
  }
  return absl::InvalidArgumentError("option `" + name + "` needs a size such as 5GB or 500MB; found `" + text + "`");
}

absl::StatusOr<DType> ReadDType(const std::string& name, const std::string& text) {
  const std::optional<DType> dtype = DTypeFromName(text);
  if (dtype && *dtype != DType::kInt64) return *dtype;
  return absl::InvalidArgumentError("option `" + name + "` is bf16, fp32 or fp64; found `" + text + "`");
}

struct ExportOptions : CommandOptions {
  ExportRequest request;
};

absl::StatusOr<ExportRequest> RequestOf(const ExportOptions& options) {
  if (options.words.size() != 1) {
    return absl::InvalidArgumentError("`plan export` needs one run directory or checkpoint; found " +
                                      std::to_string(options.words.size()));
  }
  if (!options.has("--output")) return absl::InvalidArgumentError("say where to: `-o FOLDER`");
  if (options.has("--ignore") && options.request.like.empty())
    return absl::InvalidArgumentError("option `--ignore` is for the config of `--like`");
  ExportRequest request = options.request;
  request.from = options.words[0];
  return request;
}

Json JsonOf(const ExportRequest& request, const ExportedRun& exported) {
  const bool written = exported.findings.problems.empty();
  Json json = {{"folder", written ? Json(request.to) : Json()},
               {"checkpoint", exported.checkpoint},
               {"step", exported.step},
               {"model_type", exported.model_type},
               {"dtype", written ? Json(std::string(DTypeName(exported.dtype))) : Json()},
               {"shards", exported.written.shards},
               {"tensors", exported.written.tensors},
               {"parameters", exported.written.parameters},
               {"bytes", exported.written.bytes},
               {"made_up", exported.made_up},
               {"copied", exported.copied}};
  AddFindings(exported.findings, json);
  return json;
}

int Export(const ExportOptions& options) {
  const absl::StatusOr<ExportRequest> request = RequestOf(options);
  if (!request.ok()) return ExportFailed(request.status());
  absl::StatusOr<ExportedRun> exported;
  {
    ProgressBar bar;
    exported = ExportRun(*request, [&bar](int64_t done, int64_t all) {
      if (all > 0) bar.Show(static_cast<double>(done) / static_cast<double>(all), "of " + BytesText(all));
    });
  }
  if (!exported.ok()) return ExportFailed(exported.status());
  const bool written = exported->findings.problems.empty();
  if (options.json) {
    std::cout << JsonText(JsonOf(*request, *exported), 2) << "\n";
    return written ? kExitSuccess : kExitInvalid;
  }
  if (!written) std::cerr << Printable(exported->checkpoint) << " cannot be exported\n";
  std::cerr << FindingsText(exported->findings);
  if (!written) return kExitInvalid;
  for (const std::string& line : exported->made_up) std::cerr << "made up: " << Printable(line) << "\n";
  for (const std::string& line : exported->copied) std::cerr << "copied: " << Printable(line) << "\n";
  std::cout << "wrote " << Printable(request->to) << ": " << Printable(exported->model_type) << " after step "
            << exported->step << ", " << WithCommas(exported->written.parameters) << " parameters in "
            << Counted(exported->written.tensors, "tensor") << ", " << BytesText(exported->written.bytes) << " in "
            << Counted(static_cast<int64_t>(exported->written.shards.size()), "shard") << "\n";
  return kExitSuccess;
}

}  // namespace

CliCommand ExportCommand() {
  const auto request = [](auto ExportRequest::*part) { return At(&ExportOptions::request, part); };
  CliCommand command = {"export", "writes the weights of a run as a Hugging Face folder", Runs(Export), "d"};
  command.usage =
      "RUN | CHECKPOINT -o FOLDER [--like SOURCE] [--module NAME] [--dtype TYPE] [--shard-size SIZE] [--json]";
  command.options = {
      Option("-o, --output DIR", request(&ExportRequest::to), "write the folder there; it must not exist, or be empty")
          .Writes()
          .With({"plan export runs/toy -o toy_weights", "writes a Hugging Face folder"}),
      {"--like DIR", request(&ExportRequest::like),
       "take all that the run does not train from this Hugging Face folder"},
      {"--ignore KEYS", request(&ExportRequest::ignored), "with --like: keys of its config.json that may stay unread",
       ListOption},
      {"--module NAME", request(&ExportRequest::module), "export one module: a language model or an encoder alone",
       NameOf{"a module"}},
      {"--dtype bf16|fp32|fp64", request(&ExportRequest::dtype),
       "type of the weights; without it, the precision of the run", ReadDType},
      {"--shard-size SIZE", request(&ExportRequest::shard_bytes), "most bytes of a file of weights; default: 5GB",
       ReadShardSize},
      JsonOption("print what was written as JSON"),
  };
  command.details =
      "RUN is a run directory, which means its newest checkpoint. Masters are the source where the checkpoint has\n"
      "them, and every byte is proved by its digest. Without --like, transformers' config.json is written, and all\n"
      "that a run does not have is made up and named. The folder appears as a whole or not at all.\n"
      "Exit status: 1 if the run cannot be expressed, or differs from SOURCE; 2 if a folder cannot be read or\n"
      "written; 13 if the checkpoint is damaged.\n";
  command.see_also = {"import", "checkpoint"}, command.pages = {"docs/hugging_face.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright

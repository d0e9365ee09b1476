#include "planner/exchange/export_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/status_macros.h"
#include "planner/exchange/config_dtype.h"
#include "planner/exchange/config_file.h"
#include "planner/exchange/convert.h"
#include "planner/exchange/from_checkpoint.h"
#include "planner/exchange/kept_keys.h"
#include "planner/exchange/leaving_adapters.h"
#include "planner/exchange/like_source.h"
#include "planner/exchange/made_tensors.h"
#include "planner/exchange/run_model.h"
#include "planner/exchange/write_config.h"
#include "planner/plan/earlier_parts.h"
#include "planner/plan/precision.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/checkpoint/pieces.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/checkpoint/shard_reader.h"
#include "planner/state/weights/adapter_folder.h"
#include "planner/state/weights/base_digest.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/parts.h"
#include "planner/verify/verify.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

// A checkpoint that is read, and the plan that wrote it.
struct Opened {
  std::unique_ptr<CheckpointReader> reader;
  Plan plan;
};

absl::StatusOr<Opened> OpenCheckpoint(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(folder);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<OwnPlan> own = ReadOwnPlan(folder, (*reader)->manifest());
  if (!own.ok()) return own.status();
  if (!own->plan)
    return absl::InvalidArgumentError(absl::StrCat(folder, "/plan.json: ", own->unread,
                                                   "; only a release that reads the plan can export its checkpoint"));
  Opened opened{*std::move(reader), *std::move(own->plan)};
  DropEarlierParts(opened.plan);
  if (!VerifyPlan(opened.plan).empty())
    return absl::DataLossError(absl::StrCat(folder, "/plan.json breaks rules that every plan keeps"));
  const std::vector<std::string> misfits = TensorsThatDiffer(opened.plan, opened.reader->tensors());
  if (!misfits.empty())
    return absl::DataLossError(
        absl::StrCat(folder, " has not the tensors of its plan:\n", absl::StrJoin(misfits, "\n")));
  return opened;
}

// What config.json says of types becomes what is written: transformers rounds to them on loading. Tensors that pass
// through may need a wider one than the run's.
absl::Status SetDtypeWords(const RunModel& run, const Dialect& dialect, const std::string& own,
                           const std::vector<OutTensor>& passed, const std::string& source, std::vector<OutFile>& files,
                           Findings& findings) {
  const auto config =
      std::find_if(files.begin(), files.end(), [](const OutFile& file) { return file.name == kConfigFile; });
  if (config == files.end()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadWholeFile(config->from, kModelConfigJson.bytes);
  if (!text.ok()) return text.status();
  std::string whole = own;
  for (const OutTensor& tensor : passed) {
    if (tensor.parameter) whole = WordForBoth(whole, tensor.type);
  }
  std::set<std::string> parts;
  for (const DialectLine& line : dialect.lines) {
    const auto* part = std::get_if<DialectPart>(&line);
    if (part != nullptr && (part->encoder ? run.encoder : run.language) != nullptr)
      parts.insert(part->paths.begin(), part->paths.end());
  }
  const std::vector<DtypeWord> words = DtypeWords(*text);
  // What is right already stays: some tensors of a source are wider than it says, and rounded on loading.
  const bool right = std::any_of(words.begin(), words.end(),
                                 [&](const DtypeWord& word) { return word.part.empty() && word.word == own; });
  if (right) whole = own;
  std::vector<std::string> changes;
  for (const DtypeWord& word : words) {
    const std::string& wanted = word.part.empty() ? whole : parts.contains(word.part) ? own : word.word;
    if (wanted == word.word) continue;
    changes.push_back(
        absl::StrCat(word.part, word.part.empty() ? "" : ".", "dtype ", wanted, " instead of ", word.word));
  }
  if (changes.empty()) return absl::OkStatus();
  findings.notes.push_back(absl::StrCat("config.json of ", source, " is copied with ", absl::StrJoin(changes, ", "),
                                        ", the type of the tensors"));
  std::string changed = WithDtypeWords(*text, whole, own, parts);
  config->from.clear(), config->text = std::move(changed);
  return absl::OkStatus();
}

// What the weights that the adapters of a module stand on are from, as an absolute path: the folder of adapters may be
// opened from anywhere. Empty: they were drawn.
std::string BaseName(const Plan& plan, const Module& module) {
  const absl::StatusOr<std::vector<PartSource>> parts = SourcesOfParts(plan);
  if (!parts.ok()) return "";
  for (const PartSource& source : *parts) {
    if (source.part.module != &module || source.part.adapter || source.part.projection || source.path.empty()) continue;
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(source.path, error);
    return error ? source.path : path.lexically_normal().string();
  }
  return "";
}

// Notes if the adapters that leave were trained on other files than those that they are merged into.
absl::Status CompareBase(const Plan& plan, const Manifest& manifest, const RunModel& run, const std::string& like,
                         Findings& findings) {
  Plan on_source = plan;
  on_source.initialize = InitializePlan{.from = like};
  ABSL_ASSIGN_OR_RETURN(const auto found, BaseDigests(on_source, FitWeights(on_source)));
  for (const std::string& module : OnOtherBase(plan, manifest.base, found)) {
    const auto is = [&](const Module* one) { return one != nullptr && one->name == module; };
    if (!is(run.encoder) && !is(run.language)) continue;
    findings.notes.push_back(absl::StrCat("the adapters of ", module, " were trained on other files than those of ",
                                          like, ": they are merged into these all the same"));
  }
  return absl::OkStatus();
}

bool LeavesAdapters(const RunModel& run) {
  return (run.encoder != nullptr && run.encoder->adapted()) || (run.language != nullptr && run.language->adapted());
}

}  // namespace

absl::StatusOr<ExportedRun> ExportRun(const ExportRequest& request,
                                      const std::function<void(int64_t, int64_t)>& progress) {
  if (absl::Status status = CheckTarget(request.to); !status.ok()) return status;
  const absl::StatusOr<NamedCheckpoint> named = FindCheckpoint(request.from);
  if (!named.ok()) return named.status();
  ExportedRun exported;
  Findings& findings = exported.findings;
  for (const UnusableCheckpoint& one : named->passed)
    findings.notes.push_back(absl::StrCat("checkpoint ", one.folder, " is not used: ", one.why));
  exported.checkpoint = named->checkpoint.folder;
  exported.step = named->checkpoint.manifest.counters.step;
  absl::StatusOr<Opened> opened = OpenCheckpoint(exported.checkpoint);
  if (!opened.ok()) return opened.status();
  const RunModel run = ModelOfRun(opened->plan, request.module, findings, *request.dialects);
  if (!findings.problems.empty()) return exported;

  std::optional<ReadFolder> source;
  std::optional<WrittenConfig> config;
  const Dialect* dialect = nullptr;
  exported.dtype = request.dtype.value_or(DTypeOf(opened->plan.precision));
  if (!request.like.empty()) {
    absl::StatusOr<ReadFolder> read = ReadHuggingFaceFolder(request.like, request.ignored, *request.dialects);
    if (!read.ok()) return read.status();
    source = *std::move(read);
    findings.problems = source->findings.problems;
    if (!findings.problems.empty()) return exported;
    dialect = source->said.dialect;
    const auto name = [](const Module* module) { return module != nullptr ? module->name : ""; };
    CompareWithSource(run.said, *source, findings, name(run.encoder), name(run.language));
  } else if (LeavesAdapters(run)) {
    // A folder of adapters has no config.json: it has the names of the dialect that is nearest, which need not be able
    // to say all of the model.
    Findings of_config;
    dialect = ConfigOf(opened->plan, run.said, exported.dtype, of_config).dialect;
    if (dialect == nullptr) findings.problems = std::move(of_config.problems);
    if (request.shard_bytes)
      findings.Problem("--shard-size", "",
                       "is for shards of a model, and PEFT opens adapters in one file: leave it out");
  } else {
    const KeptKeys kept = run.language != nullptr ? KeptKeysOf(opened->plan, run.language->name) : KeptKeys();
    config = ConfigOf(opened->plan, run.said, exported.dtype, findings, kept);
    exported.copied = config->kept;
    dialect = config->dialect;
  }
  if (!findings.problems.empty()) return exported;

  exported.model_type = source ? source->said.type : dialect->name();
  std::map<std::string, DType> keys;
  for (const auto& [key, type] : opened->reader->tensors()) keys[key] = type.dtype;
  std::vector<OutTensor> tensors;
  const auto has = [&](const std::string& name) { return source ? source->weights->ShapeOf(name) : nullptr; };
  std::vector<LeavingTensor> leaving = LeavingTensors(run, *dialect, keys, has, findings);
  std::vector<LeavingAdapter> adapters = TakeAdapters(run, leaving);
  if (!findings.problems.empty()) return exported;
  std::vector<OutFile> files;
  std::string one_file;
  if (!adapters.empty() && !source) {
    const std::string base = BaseName(opened->plan, *adapters.front().module);
    PeftFolder peft = PeftFolderOf(std::move(adapters), base, *opened->reader, exported.dtype, findings);
    std::erase_if(leaving, [](const LeavingTensor& tensor) { return !tensor.trained; });
    if (!leaving.empty())
      findings.notes.push_back(absl::StrCat("left behind: ", leaving.size(),
                                            " tensors that the run trains beside adapters, such as ", leaving[0].name));
    if (!findings.problems.empty()) return exported;
    tensors = std::move(peft.tensors);
    files.push_back({kAdapterConfigFile, "", std::move(peft.config)});
    one_file = kAdapterModelFile;
    exported.model_type = "adapters of " + exported.model_type;
  } else if (source) {
    if (!adapters.empty()) {
      const absl::Status compared = CompareBase(opened->plan, named->checkpoint.manifest, run, request.like, findings);
      if (!compared.ok()) return compared;
    }
    for (LeavingTensor& one : leaving)
      tensors.push_back(FromCheckpoint(*opened->reader, std::move(one), exported.dtype));
    absl::StatusOr<std::vector<OutTensor>> merged =
        MergedTensors(std::move(adapters), *source, *opened->reader, exported.dtype, findings);
    if (!merged.ok()) return merged.status();
    tensors.insert(tensors.end(), std::make_move_iterator(merged->begin()), std::make_move_iterator(merged->end()));
    if (!findings.problems.empty()) return exported;
    AddCopies(*source, tensors);
    std::vector<OutTensor> passed = PassedThroughTensors(*source, tensors, findings);
    if (!findings.problems.empty()) return exported;
    absl::StatusOr<std::vector<OutFile>> beside = FilesBesideWeights(request.like, findings);
    if (!beside.ok()) return beside.status();
    if (!findings.problems.empty()) return exported;
    files = *std::move(beside);
    if (absl::Status status =
            SetDtypeWords(run, *dialect, TorchName(exported.dtype), passed, request.like, files, findings);
        !status.ok())
      return status;
    if (!passed.empty())
      exported.copied.push_back(
          absl::StrCat(passed.size(), " tensors that the run does not train, such as ", passed[0].name));
    tensors.insert(tensors.end(), std::make_move_iterator(passed.begin()), std::make_move_iterator(passed.end()));
    for (const OutFile& file : files) exported.copied.push_back(file.name);
  } else {
    for (LeavingTensor& one : leaving)
      tensors.push_back(FromCheckpoint(*opened->reader, std::move(one), exported.dtype));
    std::vector<OutTensor> made = MadeTensors(config->read, exported.dtype, exported.made_up);
    tensors.insert(tensors.end(), std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
    exported.made_up.insert(exported.made_up.end(), config->made_up.begin(), config->made_up.end());
    files.push_back({kConfigFile, "", JsonText(config->config, 2) + "\n"});
  }

  int64_t done = 0, all = 0;
  for (const OutTensor& tensor : tensors) all += tensor.bytes;
  absl::StatusOr<WrittenFolder> written =
      WriteFolder(request.to, tensors, files, one_file, request.shard_bytes.value_or(kShardBytes), [&](int64_t bytes) {
        done += bytes;
        if (progress) progress(done, all);
      });
  if (!written.ok()) return written.status();
  exported.written = *std::move(written);
  return exported;
}

}  // namespace planwright

// `plan checkpoint`: what checkpoints a run has, what one holds, and whether it is whole (docs/checkpoints.md).

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/check_checkpoint.h"
#include "planner/cli/checkpoint_folders.h"
#include "planner/cli/checkpoint_text.h"
#include "planner/cli/command.h"
#include "planner/cli/terminal.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/shard_files.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

void Print(const Json& json) {
  // Names of folders may be no UTF-8.
  std::cout << JsonText(json, 2) << "\n";
}

// As UsageError: for what is no mistake of the words, but ends the command too.
int Failed(const absl::Status& status) {
  UsageError(Printable(std::string(status.message())));
  return status.code() == absl::StatusCode::kDataLoss ? kExitDamaged : kExitUsage;
}

int List(const std::string& run_dir, bool as_json) {
  if (absl::Status status = CheckFolder(run_dir); !status.ok()) return Failed(status);
  if (!IsRunDirectory(run_dir)) {
    return UsageError(Printable(run_dir) + " is no run directory: it has no folder checkpoints, lives or logs");
  }
  const absl::StatusOr<CheckpointList> list = CheckpointsOf(run_dir);
  if (!list.ok()) return Failed(list.status());
  if (as_json) {
    Print(CheckpointsJson(*list));
  } else if (list->found.empty() && list->unusable.empty()) {
    std::cerr << Printable(WhyNoCheckpoints(run_dir) + "; they would be in " + run_dir + "/checkpoints") << "\n";
  } else {
    std::cout << CheckpointsText(*list, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return kExitSuccess;
}

absl::StatusOr<StoredCheckpoint> ReadStored(const std::string& folder) {
  const auto in = [&](const std::string& file, const absl::Status& status) {
    return absl::Status(status.code(), folder + "/" + file + ": " + std::string(status.message()));
  };
  StoredCheckpoint stored;
  stored.folder = folder;
  absl::StatusOr<Manifest> manifest = ReadManifestFile(folder);
  if (!manifest.ok()) return in(kManifestFile, manifest.status());
  stored.manifest = *std::move(manifest);
  for (const ManifestShard& shard : stored.manifest.shards) {
    const absl::StatusOr<ShardIndex> index = ReadIndexFile(folder, stored.manifest, shard);
    if (!index.ok()) return in(IndexFile(shard.rank), index.status());
    for (const auto& [key, tensor] : index->tensors) {
      ShardedTensor& of = stored.tensors.try_emplace(key, ShardedTensor{tensor.dtype, tensor.shape, {}}).first->second;
      const int first = of.ranks.empty() ? shard.rank : *of.ranks.begin();
      if (absl::Status status = CheckSameTensor(key, tensor, of.dtype, of.shape, first); !status.ok())
        return in(IndexFile(shard.rank), status);
      of.ranks.insert(shard.rank);
    }
  }
  return stored;
}

int Show(const std::string& folder, bool as_json) {
  const absl::StatusOr<std::vector<std::string>> folders = CheckpointFoldersOf(folder);
  if (!folders.ok()) return Failed(folders.status());
  const absl::StatusOr<StoredCheckpoint> stored = ReadStored(folders->front());
  if (!stored.ok()) {
    // A file of a checkpoint that cannot be read is a damage too: it is missing, or its disk fails.
    UsageError(Printable(std::string(stored.status().message())));
    return kExitDamaged;
  }
  if (as_json) {
    Print(CheckpointJson(*stored));
  } else {
    std::cout << CheckpointText(*stored, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return kExitSuccess;
}

int Verify(const std::string& folder, bool all, bool as_json) {
  const absl::StatusOr<std::vector<std::string>> folders = CheckpointFoldersOf(folder);
  if (!folders.ok()) return Failed(folders.status());
  Json json = Json::array();
  bool whole = true;
  int64_t read = 0;
  for (const std::string& each : *folders) {
    const CheckedCheckpoint checked = CheckCheckpoint(each);
    whole = whole && (checked.problems.empty() || checked.removed);
    read += checked.removed ? 0 : 1;
    if (as_json) {
      json.push_back(CheckedJson(checked));
    } else {
      std::cout << CheckedText(checked) << std::flush;
    }
    if (!all) break;
  }
  whole = whole && read > 0;
  if (as_json) Print({{"whole", whole}, {"checkpoints", json}});
  if (read == 0) return kExitUsage;
  return whole ? kExitSuccess : kExitDamaged;
}

struct CheckpointOptions : CommandOptions {
  bool all = false;
};

int Checkpoint(const CheckpointOptions& options) {
  const std::vector<std::string>& words = options.words;
  if (words.empty()) return UsageError("say what to do: `plan checkpoint ls`, `show` or `verify`, and a folder");
  const std::string& action = words[0];
  const std::vector<std::string> actions = {"ls", "show", "verify"};
  if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
    return UsageError("`plan checkpoint` cannot `" + Printable(action) + "`; " +
                      NearNameHelp(action, actions, "it can `ls`, `show` and `verify`"));
  }
  if (words.size() != 2)
    return UsageError("`plan checkpoint " + action + "` needs one folder; found " + std::to_string(words.size() - 1));
  if (options.all && action != "verify") return UsageError("option `--all` is for `verify`");
  if (action == "ls") return List(words[1], options.json);
  if (action == "show") return Show(words[1], options.json);
  return Verify(words[1], options.all, options.json);
}

}  // namespace

CliCommand CheckpointCommand() {
  CliCommand command = {"checkpoint", "lists the checkpoints of a run, shows one, or reads it to see that it is whole",
                        Runs(Checkpoint), "cd"};
  command.usage = "ls RUN | show DIR | verify DIR [--all] [--json]";
  command.options = {
      {"--all", &CheckpointOptions::all, "verify all checkpoints of the run that count"},
      JsonOption("print the same as JSON"),
  };
  command.details =
      "  ls RUN      the checkpoints of a run directory, newest first; of those that cannot be loaded, why;\n"
      "              the one that the newest launch began from stays, besides the newest checkpoint.keep_last\n"
      "  show DIR    what a checkpoint holds: counters, and tensors by module\n"
      "  verify DIR  reads every byte and compares all digests; names each damaged file\n\n"
      "DIR is a checkpoint, RUN/checkpoints/step-N.life-N, or a run directory, which means its newest one.\n"
      "Exit status: 13 if a checkpoint is damaged, 2 if a folder is none, or was removed while it was read.\n";
  command.examples = {
      {"plan checkpoint ls runs/toy", "lists the checkpoints"},
      {"plan checkpoint verify runs/toy", "reads the newest one, every byte"},
  };
  command.see_also = {"launch", "diff", "export"}, command.pages = {"docs/checkpoints.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright

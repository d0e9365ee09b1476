#include "planner/cli/first/misfits.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/exchange/said_text.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/tree_edits.h"
#include "planner/state/dialect/dialect.h"

namespace planwright {

namespace {

// The types of folders that hold an encoder alone: "radio, siglip_vision_model or siglip".
std::string EncoderTypes() {
  std::vector<std::string> types;
  for (const Dialect& dialect : BuiltInDialects().all()) {
    const bool alone = dialect.folder && !dialect.composite() && dialect.where.empty();
    if (alone && StatementOf(dialect.kind)->has_images)
      types.insert(types.end(), dialect.names.begin(), dialect.names.end());
  }
  return Listed(types, " or ");
}

}  // namespace

std::vector<std::string> WrongFolders(const FolderParts& parts) {
  const ModelFolder& weights = parts.weights;
  std::vector<std::string> problems;
  if (weights.languages.empty()) {
    problems.push_back(absl::StrCat("option `--weights`: ", Printable(weights.path), " is an encoder (",
                                    absl::StrJoin(weights.encoders, ", "),
                                    ") without a language model: name it by "
                                    "--encoder, and a language model's folder by --weights"));
  }
  if (!parts.encoder) return problems;
  const ModelFolder& encoder = *parts.encoder;
  if (encoder.encoders.empty()) {
    problems.push_back(absl::StrCat("option `--encoder`: ", Printable(encoder.path), " is a language model (",
                                    absl::StrJoin(encoder.languages, ", "),
                                    ") and no encoder: name a folder of model_type ", EncoderTypes(),
                                    " (docs/hugging_face.md)"));
  } else if (!encoder.languages.empty()) {
    problems.push_back(absl::StrCat("option `--encoder`: ", Printable(encoder.path),
                                    " has a language model, too: name it by --weights, without --encoder"));
  }
  if (!weights.languages.empty() && !weights.encoders.empty()) {
    problems.push_back(absl::StrCat("option `--encoder`: ", Printable(weights.path), " has an encoder of its own (",
                                    absl::StrJoin(weights.encoders, ", "), "): leave --encoder out"));
  }
  return problems;
}

std::vector<std::string> WrongShards(const FolderParts& parts) {
  std::vector<std::string> problems;
  const ModelFolder& weights = parts.weights;
  const std::string& language = weights.languages.front();
  const int64_t own = NumberAt(weights.models, absl::StrCat(language, ".vocabulary"), 0);
  const int64_t vocabulary = NumberAt(parts.asked, absl::StrCat("models.", language, ".vocabulary"), own);
  const YamlNode* pinned = NodeAt(parts.asked, "data.tokenizer_digest");
  std::set<std::string> seen;
  for (const PreparedShards* shards : parts.all()) {
    const Prepared& prepared = *shards->prepared;
    if (!seen.insert(prepared.path).second) continue;
    const std::string path = Printable(prepared.path),
                      again = absl::StrCat("prepare the data again with --tokenizer ", Printable(weights.path));
    if (!weights.digest.empty() && prepared.tokenizer_digest != weights.digest && !pinned) {
      problems.push_back(absl::StrCat(
          path, ": its ids were made with ", Printable(prepared.tokenizer), " ",
          prepared.tokenizer_digest.substr(0, 12), ", and ", kTokenizerFile, " of ", Printable(weights.path), " is ",
          weights.digest.substr(0, 12), ": ", again,
          "; if its ids are those of the model nevertheless, add data.tokenizer_digest=", prepared.tokenizer_digest));
    }
    if (prepared.vocabulary > vocabulary) {
      problems.push_back(absl::StrCat(path, ": its ids need a vocabulary of ", prepared.vocabulary, ", and ",
                                      Printable(weights.path), " has ", vocabulary, ": ", again,
                                      "; or give the model rows that are drawn: models.", language,
                                      ".vocabulary=", prepared.vocabulary));
    }
    if (parts.has_encoder() && shards->images > 0 && prepared.image < 0)
      problems.push_back(absl::StrCat(path, ": it names no image token: prepare the data again with --image-token"));
    if (prepared.image >= 0 && weights.image_token >= 0 && prepared.image != weights.image_token) {
      problems.push_back(absl::StrCat(path, ": its image token is ", prepared.image, ", and that of ",
                                      Printable(weights.path), " ", weights.image_token,
                                      ": prepare the data again with --image-token ", weights.image_token));
    }
    if (!parts.has_encoder() && shards->images > 0) {
      problems.push_back(absl::StrCat(path, ": its documents have ", Counted(ImagesOf(prepared), "image"), ", and ",
                                      Printable(weights.path), " has no encoder: name one by --encoder"));
    }
  }
  if (parts.has_encoder()) {
    const auto data = parts.all();
    if (std::all_of(data.begin(), data.end(), [](const PreparedShards* shards) { return shards->prepared->image < 0; }))
      problems.push_back(absl::StrCat(Printable(data.front()->prepared->path),
                                      ": an encoder needs an image token, and it names none: prepare the data again "
                                      "with --image-token"));
  }
  std::sort(problems.begin(), problems.end());
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  return problems;
}

}  // namespace planwright

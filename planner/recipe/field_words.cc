#include "planner/recipe/field_words.h"

#include "absl/strings/ascii.h"

namespace planwright {
namespace {

constexpr FieldWord kWords[] = {
#define WORD(word, of, unit, keys, why) {word, of, FieldUnit::unit, keys, why},
#include "planner/recipe/field_words.def"
#undef WORD
};

constexpr std::string_view kNoScores = "flash attention keeps no scores to repeat; elementwise saves memory",
                           kNoFp16 = "there is no fp16", kNoFp8 = "there is no fp8",
                           kNoRestarts = "there are no restarts",
                           kOtherBlocks =
                               "it has neither rotary positions (RoPE) nor gated MLPs (SwiGLU): positions come from "
                               "Mamba-2 layers, and MLPs are squared ReLU",
                           kAllElementwise = "it repeats norms, activation functions and short convolutions",
                           kMadeFirst = "shards or ids of it are made before the run, by ./dev prepare",
                           kPairsOfFiles =
                               "ids in PATH.bin and PATH.idx are a source of kind tokens: sources: "
                               "[{kind: tokens, path: PATH}]",
                           kShards =
                               "tar shards are a source of kind webdataset: sources: "
                               "[{kind: webdataset, shards: FILES}]";

// Only words that are not near their choice by letters.
constexpr ChoiceWord kChoiceWords[] = {
    {"models.<name>.kind", "vit", "radio_vit"},
    {"models.<name>.kind", "radio", "radio_vit"},
    {"models.<name>.kind", "c_radio", "radio_vit"},
    {"models.<name>.kind", "clip", "radio_vit"},
    {"models.<name>.kind", "siglip", "radio_vit"},
    {"models.<name>.kind", "encoder", "radio_vit"},
    {"models.<name>.kind", "gpt", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "gpt2", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "llama", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "llama2", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "llama3", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "mistral", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "mixtral", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "qwen", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "qwen2", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "qwen3", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "gemma", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "deepseek_v3", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "transformer", "hybrid_lm", kOtherBlocks},
    {"models.<name>.kind", "mamba", "hybrid_lm"},
    {"models.<name>.kind", "moe", "hybrid_lm"},
    {"models.<name>.kind", "lm", "hybrid_lm"},
    {"models.<name>.kind", "nemotron_h", "hybrid_lm"},
    {"cluster.gpu", "a100", "a100_sxm"},
    {"cluster.gpu", "h100", "h100_sxm"},
    {"cluster.gpu", "h200", "h200_sxm"},
    {"cluster.gpu", "cpu", "none"},
    {"modules.<name>.recompute", "selective", "none", kNoScores},
    {"modules.<name>.recompute", "core_attn", "none", kNoScores},
    {"modules.<name>.recompute", "moe_act", "elementwise", kAllElementwise},
    {"modules.<name>.recompute", "layernorm", "elementwise", kAllElementwise},
    {"modules.<name>.recompute", "uniform", "full"},
    {"modules.<name>.recompute", "block_wise", "full"},
    {"precision.params", "bfloat16", "bf16"},
    {"precision.params", "float32", "fp32"},
    {"precision.params", "32", "fp32"},
    {"precision.params", "float64", "fp64"},
    {"precision.params", "fp16", "bf16", kNoFp16},
    {"precision.params", "float16", "bf16", kNoFp16},
    {"precision.params", "half", "bf16", kNoFp16},
    {"precision.params", "16_mixed", "bf16", kNoFp16},
    {"precision.params", "16", "bf16", kNoFp16},
    {"precision.params", "fp8", "bf16", kNoFp8},
    {"precision.params", "float8", "bf16", kNoFp8},
    {"precision.params", "bf16_mixed", "bf16"},
    {"precision.params", "bf16_true", "bf16"},
    {"precision.params", "32_true", "fp32"},
    {"precision.params", "double", "fp64"},
    {"modules.<name>.parallel.dispatch", "alltoall", "all_to_all"},
    {"modules.<name>.parallel.dispatch", "allgather", "all_gather"},
    {"modules.<name>.parallel.dispatch", "flex", "auto"},
    {"budget.learning_rate.style", "cosine_with_min_lr", "cosine"},
    {"budget.learning_rate.style", "cosine_annealing", "cosine"},
    {"budget.learning_rate.style", "cosine_with_restarts", "cosine", kNoRestarts},
    {"budget.learning_rate.style", "constant_with_warmup", "constant"},
    {"budget.learning_rate.style", "linear_with_warmup", "linear"},
    {"budget.learning_rate.wsd.style", "sqrt", "minus_sqrt"},
    {"budget.learning_rate.wsd.style", "1_sqrt", "minus_sqrt"},
    {"budget.learning_rate.style", "inverse_square_root", "inverse_sqrt"},
    {"budget.learning_rate.style", "warmup_stable_decay", "wsd"},
    {"modules.<name>.train.backbone", "freeze", "frozen"},
    {"modules.<name>.train.backbone", "false", "frozen"},
    {"modules.<name>.train.backbone", "true", "trained"},
    {"modules.<name>.train.backbone", "no", "frozen"},
    {"modules.<name>.train.backbone", "yes", "trained"},
    {"modules.<name>.train.projection", "no", "frozen"},
    {"modules.<name>.train.projection", "yes", "trained"},
    {"modules.<name>.train.projection", "freeze", "frozen"},
    {"modules.<name>.train.projection", "false", "frozen"},
    {"modules.<name>.train.projection", "true", "trained"},
    {"modules.<name>.recompute", "true", "full"},
    {"modules.<name>.recompute", "false", "none"},
    {"data.kind", "synthetic", "mock"},
    {"data.kind", "dummy", "mock"},
    {"data.kind", "energon", "sources", kShards},
    {"data.kind", "tar", "sources", kShards},
    {"data.kind", "tokens", "sources", kPairsOfFiles},
    {"data.kind", "megatron", "sources", kPairsOfFiles},
    {"data.kind", "bin", "sources", kPairsOfFiles},
    {"data.kind", "hf", "sources", kMadeFirst},
    {"data.kind", "huggingface", "sources", kMadeFirst},
    {"data.kind", "json", "sources", kMadeFirst},
    {"data.kind", "jsonl", "sources", kMadeFirst},
    {"data.kind", "parquet", "sources", kMadeFirst},
    {"data.kind", "arrow", "sources", kMadeFirst},
};

// "--train-iters" and "TrainIters" are "train_iters".
std::string Plain(std::string_view written) {
  while (written.starts_with('-')) written.remove_prefix(1);
  std::string word;
  for (size_t i = 0; i < written.size(); ++i) {
    const char c = written[i];
    if (absl::ascii_isupper(c) && i > 0 && absl::ascii_islower(written[i - 1])) word += '_';
    word += c == '-' ? '_' : absl::ascii_tolower(c);
  }
  return word;
}

}  // namespace

std::span<const FieldWord> FieldWords() { return kWords; }

const FieldWord* FindFieldWord(std::string_view written) {
  const std::string path = Plain(written);
  for (std::string_view word = path; !word.empty();) {
    for (const FieldWord& known : kWords) {
      if (known.word == word) return &known;
    }
    const size_t dot = word.find('.');
    word = dot == std::string_view::npos ? std::string_view() : word.substr(dot + 1);
  }
  return nullptr;
}

const ChoiceWord* FindChoiceWord(std::string_view path, std::string_view word) {
  const std::string plain = Plain(word);
  for (const ChoiceWord& known : kChoiceWords) {
    if (known.path == path && known.word == plain) return &known;
  }
  return nullptr;
}

}  // namespace planwright

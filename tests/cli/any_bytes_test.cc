// Whatever bytes `plan` is given, it ends by itself: with status 0, 1 or 2, within 256 MiB and a bounded amount of work.
// Work is counted in a unit of this very machine: what a good recipe of 8 ranks costs here. Seconds are for the bench.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr rlim_t kMemory = rlim_t{256} << 20;
constexpr double kMostRecipes = 400;  // the most work, in good recipes: ten times what the worst input of this file takes
constexpr int kPatience = 120;        // seconds: a guard against what would wait for ever

const std::string kRecipes = std::string(PLANWRIGHT_SOURCE_DIR) + "/recipes/";
const std::string kRecipe = kRecipes + "nemotron_moe_vlm_20l_mock_8r.yaml";

struct End {
  int status = 0;  // of wait
  double seconds = 0;
};

[[noreturn]] void BecomePlan(const std::vector<std::string>& arguments) {
  const rlimit memory = {kMemory, kMemory};
  setrlimit(RLIMIT_AS, &memory);
  alarm(kPatience);
  const int nowhere = open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) dup2(nowhere, fd);
  std::vector<char*> words = {const_cast<char*>("plan")};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(PLAN_PROGRAM, words.data());
  _exit(127);
}

End RunPlan(const std::vector<std::string>& arguments) {
  const pid_t child = fork();
  if (child == 0) BecomePlan(arguments);
  End end;
  rusage used{};
  wait4(child, &end.status, 0, &used);
  end.seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  return end;
}

// Processor seconds of a good recipe: the least of several, as whatever disturbs a run only adds to it.
double SecondsOfARecipe() {
  static const double seconds = [] {
    double least = RunPlan({"validate", kRecipe}).seconds;
    for (int i = 0; i < 8; ++i) least = std::min(least, RunPlan({"validate", kRecipe}).seconds);
    return least;
  }();
  return seconds;
}

void ExpectBounded(const End& end) { EXPECT_LE(end.seconds, kMostRecipes * SecondsOfARecipe()); }

void ExpectEnds(const std::vector<std::string>& arguments) {
  const End end = RunPlan(arguments);
  ASSERT_TRUE(WIFEXITED(end.status)) << "killed by signal " << WTERMSIG(end.status);
  EXPECT_GE(WEXITSTATUS(end.status), 0);
  EXPECT_LE(WEXITSTATUS(end.status), 2);
  ExpectBounded(end);
}

void ExpectRefused(const std::vector<std::string>& arguments) {
  const End end = RunPlan(arguments);
  ASSERT_TRUE(WIFEXITED(end.status)) << "killed by signal " << WTERMSIG(end.status);
  EXPECT_TRUE(WEXITSTATUS(end.status) == 1 || WEXITSTATUS(end.status) == 2) << WEXITSTATUS(end.status);
  ExpectBounded(end);
}

std::string Times(size_t count, const std::string& piece) {
  std::string text;
  while (text.size() + piece.size() <= count) text += piece;
  return text;
}

class AnyBytes : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "bytesXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::string folder_;
};

// The most that a recipe may have, of every piece that a scanner, a parser or a list of problems could choke on.
TEST_F(AnyBytes, AMegabyteOfAnything) {
  const char* pieces[] = {"[", "{", "{a: ", "- ", "? ", ": ", "a: ", "- - ", "\n", " ", "\"", "'", "''", "\\", "\"\\", "#", "# \n", "|\n", ">\n ",
                          "%", "@", "`", "!", "!a ", "&a ", "*a ", "*a\n", "<<: ", "---\n", "...\n", "]", "}", ",", "[],", "{},", "a\n", "a: b\n",
                          "? a\n", "- a\n", "-\n", "a:\n", "a: [", "x", "1", "\t", "\xc3\xa4", "\xe2\x80\x8b", "\xf0\x9f\x9a\x80", "a: 'b\n",
                          "a: \"b\n", "[a, b]\n", "[[], ", "{a: 1}\n", "a: {b: c}\n", "modules:\n", "&a [*a, ", "-1.5e300, "};
  for (const char* piece : pieces) {
    for (const char* before : {"", "x: [", "models: {a: {", "- "}) {
      SCOPED_TRACE(std::string(before) + piece);
      ExpectRefused({"validate", Write("r.yaml", before + Times((1 << 20) - 16, piece))});
    }
  }
}

TEST_F(AnyBytes, AMegabyteOfKeysThatDiffer) {
  std::string keys, nested = "modules:\n", names = "models: {";
  for (int i = 0; keys.size() < (1 << 20) - 32; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  for (int i = 0; nested.size() < (1 << 20) - 64; ++i) nested += " m" + std::to_string(i) + ": {modle: x, placment: {ranks: -1}}\n";
  for (int i = 0; names.size() < (1 << 20) - 64; ++i) names += "m" + std::to_string(i) + ": {kind: hybrid_lm}, ";
  ExpectRefused({"validate", Write("keys.yaml", keys)});
  ExpectRefused({"validate", Write("nested.yaml", nested)});
  ExpectRefused({"validate", Write("names.yaml", names + "}")});
  ExpectRefused({"validate", Write("keys.yaml", keys), "--json"});
}

TEST_F(AnyBytes, NestingAndAliasBombs) {
  std::string block, bomb = "a: &a [x, x]\n";
  for (int depth = 0; depth < 1000; ++depth) block += std::string(depth, ' ') + "a:\n";
  for (char c = 'b'; c < 'z'; ++c) bomb += std::string(1, c) + ": &" + c + " [*" + char(c - 1) + ", *" + char(c - 1) + ", *" + char(c - 1) + "]\n";
  ExpectRefused({"validate", Write("block.yaml", block)});
  ExpectRefused({"validate", Write("bomb.yaml", bomb)});
}

TEST_F(AnyBytes, WrongEncodings) {
  std::ifstream file(kRecipe);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  std::string wide_little = "\xff\xfe", wide_big = "\xfe\xff", with_nul = good;
  for (char c : good) (wide_little += c) += '\0', (wide_big += '\0') += c;
  with_nul[good.size() / 2] = '\0';
  for (const std::string& bytes : {wide_little, wide_big, wide_little.substr(2), with_nul, "\xef\xbb\xbf" + good, good + "\xe9", std::string("\0", 1),
                                   std::string(1000, '\0'), std::string("\xff"), std::string()}) {
    ExpectRefused({"validate", Write("r.yaml", bytes)});
    ExpectRefused({"validate", Write("p.json", bytes)});
  }
}

TEST_F(AnyBytes, HugeFiles) {
  const std::string kHundred = Times(100 << 20, "a: 1234567\n");
  ExpectRefused({"validate", Write("r.yaml", kHundred)});
  ExpectRefused({"validate", Write("p.json", kHundred)});
  for (const char* name : {"hole.yaml", "hole.json"}) {
    const std::string path = Write(name, "");
    fs::resize_file(path, uintmax_t{1} << 40);
    ExpectRefused({"validate", path});
  }
}

TEST_F(AnyBytes, PathsThatAreNoPlainFiles) {
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  fs::create_symlink("loop", folder_ + "/loop");
  fs::create_directory(folder_ + "/folder");
  const std::vector<std::string> targets = {"/dev/zero", "/dev/full", "/proc/self/mem", "/proc/kmsg", "/proc/self/fd/0", folder_ + "/fifo",
                                            folder_ + "/loop", folder_ + "/folder", folder_ + "/absent", std::string(5000, 'x'), "\xff\xfe", ""};
  for (const std::string& target : targets) {
    SCOPED_TRACE(target.substr(0, 80));
    ExpectRefused({"validate", target});
    ExpectRefused({"validate", Write("r.yaml", "extends: [\"" + target + "\"]\n")});
    if (target.size() > 100 || target.empty()) continue;
    for (const char* name : {"/link.yaml", "/link.json"}) {
      fs::remove(folder_ + name);
      fs::create_symlink(target, folder_ + name);
      ExpectRefused({"validate", folder_ + name});
      ExpectEnds({"compile", kRecipe, "-o", folder_ + name + "/below"});  // below a folder it may be written
    }
  }
}

TEST_F(AnyBytes, RecipesThatExtendEachOther) {
  ExpectRefused({"validate", Write("self.yaml", "extends: [self.yaml]\n")});
  Write("b.yaml", "extends: [c.yaml]\n");
  Write("c.yaml", "extends: [./../" + fs::path(folder_).filename().string() + "/b.yaml]\n");
  ExpectRefused({"validate", folder_ + "/b.yaml"});
  for (int i = 0; i < 40; ++i) {  // 2^40 ways down
    const std::string next = std::to_string(i + 1) + ".yaml";
    Write(std::to_string(i) + ".yaml", "extends: [" + next + ", " + next + "]\n");
  }
  Write("40.yaml", "name: x\n");
  ExpectRefused({"validate", folder_ + "/0.yaml"});
  ExpectRefused({"validate", Write("many.yaml", "extends: [" + Times(1 << 19, "40.yaml, ") + "40.yaml]\n")});
  const std::string big = Times((1 << 20) - 100, "a: 1234567\n");
  Write("big.yaml", "b:\n" + Times(1 << 19, " - [1, 2]\n"));
  ExpectRefused({"validate", Write("bigs.yaml", "extends: [" + Times(60 * 10, "big.yaml, ") + "40.yaml]\n")});
}

TEST_F(AnyBytes, OverridesAndWords) {
  ExpectRefused({"validate", kRecipe, "a.b.c.d.e.f=1"});
  ExpectRefused({"validate", kRecipe, Times(100000, "a.") + "a=1"});
  ExpectRefused({"validate", kRecipe, "name=" + Times(100000, "[")});
  ExpectRefused({"validate", kRecipe, "=\xff"});
  ExpectRefused({"validate", kRecipe, "name=\xff"});
  ExpectRefused({"validate", kRecipe, "name=*a"});
  ExpectRefused({Times(100000, "x")});
  ExpectRefused({"validate", "--" + Times(100000, "x")});
  ExpectRefused({"show", kRecipe, Times(100000, "x")});
  ExpectRefused({"explain", Times(100000, "x")});
}

// Sizes that would make a plan too big to be of use, or overflow on the way to it.
TEST_F(AnyBytes, RecipesOfHugeSizes) {
  const std::vector<std::string> biggest = {"1000000", "1048576", "2147483647", "4294967296", "9223372036854775807", "-9223372036854775808", "0"};
  const char* keys[] = {"batch.global_samples", "batch.micro_samples", "batch.sequence_length", "budget.train_samples",
                        "budget.learning_rate.warmup_samples", "budget.learning_rate.decay_samples", "cluster.nodes", "cluster.gpus_per_node",
                        "modules.language.placement.ranks", "modules.language.placement.first_rank", "modules.language.parallel.tp",
                        "modules.language.parallel.ep", "modules.language.parallel.pp", "modules.language.parallel.cp",
                        "gradients.buckets", "data.max_images", "data.classes", "data.text_tokens", "data.image_token",
                        "models.radio_vit_h.layers", "models.radio_vit_h.hidden", "models.radio_vit_h.heads", "models.radio_vit_h.ffn",
                        "models.radio_vit_h.patch", "models.radio_vit_h.class_tokens", "models.radio_vit_h.max_image",
                        "models.radio_vit_h.pixel_shuffle", "models.radio_vit_h.projector.hidden",
                        "models.nemotron_hybrid_moe_20l.hidden", "models.nemotron_hybrid_moe_20l.vocabulary",
                        "models.nemotron_hybrid_moe_20l.attention.heads", "models.nemotron_hybrid_moe_20l.attention.head_dim",
                        "models.nemotron_hybrid_moe_20l.mamba.heads", "models.nemotron_hybrid_moe_20l.mamba.state",
                        "models.nemotron_hybrid_moe_20l.mamba.chunk", "models.nemotron_hybrid_moe_20l.mamba.conv",
                        "models.nemotron_hybrid_moe_20l.moe.experts", "models.nemotron_hybrid_moe_20l.moe.top_k",
                        "models.nemotron_hybrid_moe_20l.moe.ffn", "log.every_steps", "data.seed"};
  for (const char* key : keys) {
    for (const std::string& value : biggest) {
      SCOPED_TRACE(std::string(key) + "=" + value);
      ExpectEnds({"validate", kRecipe, std::string(key) + "=" + value});
    }
  }
  // Tens of thousands of microbatches; thousands of layers; a million ranks.
  for (const char* samples : {"1024", "2048", "2520", "4096", "65536"}) {
    ExpectEnds({"validate", kRecipe, std::string("batch.global_samples=") + samples, "budget.train_samples=131072",
                "budget.learning_rate.decay_samples=131072"});
  }
  ExpectEnds({"validate", kRecipe, "models.nemotron_hybrid_moe_20l.pattern=\"" + Times(4096, "ME*E") + "\""});
  ExpectRefused({"validate", kRecipe, "models.nemotron_hybrid_moe_20l.pattern=\"" + Times(100000, "ME*E") + "\""});
  ExpectRefused({"validate", kRecipe, "models.nemotron_hybrid_moe_20l.pattern=\"" + Times(100000, "x") + "\""});
  ExpectRefused({"validate", kRecipe, "models.nemotron_hybrid_moe_20l.pattern=\"" + Times(4096, "x") + "\""});
  ExpectEnds({"validate", kRecipe, "models.radio_vit_h.layers=4096"});
  const std::string world = "modules.language.placement.first_rank=0";
  for (const char* dp : {"1048576", "1048575", "1048572"}) {
    ExpectEnds({"validate", kRecipe, "cluster.nodes=131072", "modules.language.placement.ranks=" + std::string(dp), "batch.global_samples=4194304",
                "budget.train_samples=4194304", "budget.learning_rate.decay_samples=4194304"});
  }
}

TEST_F(AnyBytes, RecipesOfManyModules) {
  for (int count : {16, 64, 1000}) {
    std::string modules = "extends: [" + kRecipe + "]\nmodules:\n", bridges = "bridges:\n";
    for (int i = 0; i < count; ++i) {
      modules += "  m" + std::to_string(i) + ": {model: radio_vit_h, placement: {first_rank: " + std::to_string(8 + i) + ", ranks: 1}}\n";
      bridges += "  - {from: m" + std::to_string(i) + ", to: language, token: " + std::to_string(i) + "}\n";
    }
    ExpectEnds({"validate", Write("r.yaml", modules + bridges), "cluster.nodes=1000"});
  }
}

TEST_F(AnyBytes, PlansThatClaimTooMuch) {
  const std::string open = "{\"format_version\": 2, ";
  const std::string texts[] = {Times(1 << 20, "["),
                               Times(1 << 20, "{\"a\":"),
                               open + "\"blocks\": " + Times(1 << 20, "["),
                               open + "\"world_size\": 1" + std::string(1000, '0') + "}",
                               open + "\"world_size\": 2147483647}",
                               open + "\"seed\": 1e999}",
                               open + "\"roles\": [" + Times(15 << 20, "0,") + "0]}",
                               open + "\"roles\": [" + Times(15 << 20, "[],") + "0]}",
                               open + "\"roles\": [" + Times(15 << 20, "{},") + "0]}",
                               open + "\"roles\": [" + Times(15 << 20, "\"\",") + "0]}",
                               open + "\"roles\": [" + Times(15 << 20, "{\"op\":\"\"},") + "0]}",
                               open + Times(15 << 20, "\"a\":0,") + "\"b\":1}",
                               open + "\"name\": \"" + std::string(15 << 20, 'x') + "\"}",
                               open + "\"name\": \"\xff\"}",
                               "{\"format_version\": 1e400}",
                               "{\"format_version\": " + std::string(1 << 20, '9') + "}"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 60));
    ExpectRefused({"validate", Write("p.json", text)});
  }
}

}  // namespace

// `plan import` and `plan export` as a shell sees them: exit statuses, what is printed where, and what is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"
#include "tests/exchange/toy_folder.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ProgramResult;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class ExchangeCommand : public testing::PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    std::filesystem::create_directories(folder_ + "/written");
  }
  std::string WriteLanguage(const std::function<void(nlohmann::ordered_json&)>& change) {
    testing::Toy toy = testing::ReadToy("lm");
    change(toy.config);
    testing::WriteToy(folder_ + "/source", toy);
    return folder_ + "/source";
  }
  std::string MakeCheckpoint() {
    return testing::WriteCheckpointOf(testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml")),
                                      folder_ + "/run", 4, 1);
  }
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/written"))
      names.push_back(entry.path().filename());
    return names;
  }
};

TEST_F(ExchangeCommand, ImportPrintsOrWritesTheRecipesPart) {
  const std::string source = WriteLanguage([](auto&) {});
  const ProgramResult printed = Plan("import " + source);
  EXPECT_EQ(printed.status, 0) << printed.err;
  EXPECT_THAT(printed.out, AllOf(StartsWith("# Written by `plan import`"), HasSubstr("\nmodels:\n  nemotron_h:\n")));
  const ProgramResult written = Plan("import " + source + " -o " + folder_ + "/written/model.yaml");
  EXPECT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(Read("written/model.yaml"), printed.out);
  EXPECT_THAT(written.err, HasSubstr("wrote "));
  EXPECT_THAT(written.out, IsEmpty());
  const json data = json::parse(Plan("import " + source + " --json").out);
  EXPECT_EQ(data["text"], printed.out);
  EXPECT_TRUE(data["problems"].empty());
}

TEST_F(ExchangeCommand, ImportReplacesAFileIfThatIsAskedFor) {
  const std::string import = "import " + WriteLanguage([](auto&) {}), file = Write("r.yaml", "mine");
  const ProgramResult refused = Plan(import + " -o " + file);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("exists: name another file, or replace it with --replace"));
  EXPECT_EQ(Read("r.yaml"), "mine");
  EXPECT_EQ(Plan(import + " -o " + file + " --replace").status, 0);
  EXPECT_THAT(Read("r.yaml"), StartsWith("# Written by `plan import`"));
  EXPECT_THAT(Plan(import + " --replace").err, HasSubstr("option `--replace` is for -o"));
}

TEST_F(ExchangeCommand, ImportReplacesNothingOfTheFolder) {
  const std::string source = WriteLanguage([](auto&) {}), config = Read("source/config.json");
  for (const char* name : {"/config.json", "/model.yaml", "/../source/x.yaml", "/none/x.yaml"}) {
    const ProgramResult refused = Plan("import " + source + " -o " + source + name);
    EXPECT_EQ(refused.status, 2) << name;
    EXPECT_THAT(refused.err, HasSubstr("which import does not change")) << name;
  }
  EXPECT_EQ(Read("source/config.json"), config);
  std::filesystem::create_directory_symlink(source, folder_ + "/link");
  EXPECT_THAT(Plan("import " + source + " -o " + folder_ + "/link").err, HasSubstr("is a folder"));
  EXPECT_THAT(Plan("import " + source + " -o " + folder_ + "/link/x.yaml").err, HasSubstr("does not change"));
  EXPECT_THAT(Plan("import " + source + " -o .").err, HasSubstr("is a folder"));
  EXPECT_THAT(Plan("import ''").err, HasSubstr("found an empty name"));
  EXPECT_EQ(Plan("export run -o home --module ''").status, 2);
}

TEST_F(ExchangeCommand, ImportListsWhatCannotBeExpressedAndWritesNothing) {
  const std::string source = WriteLanguage(
      [](auto& config) { config["n_group"] = 4, config["moe_latent_size"] = 1024, config["colour"] = "blue\x1b[31m"; });
  const std::string file = " -o " + folder_ + "/written/model.yaml";
  const ProgramResult refused = Plan("import " + source + file);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("error: 3 problems:\n"), HasSubstr("  n_group = 4 cannot be expressed"),
                                 HasSubstr("  moe_latent_size = 1024 cannot be"), HasSubstr("colour = \"blue")));
  EXPECT_EQ(refused.err.find('\x1b'), std::string::npos) << "what a stranger wrote moves no cursor";
  EXPECT_THAT(Left(), IsEmpty());
  const ProgramResult data = Plan("import " + source + file + " --json");
  EXPECT_EQ(data.status, 1);
  EXPECT_THAT(data.err, IsEmpty());
  const json parsed = json::parse(data.out);
  EXPECT_TRUE(parsed["text"].is_null());
  EXPECT_EQ(parsed["problems"][0]["where"], "n_group");
  EXPECT_EQ(Plan("import " + source + " --ignore colour").status, 1) << "the others stay";
  EXPECT_EQ(Plan("import " + folder_ + "/none").status, 2);
  EXPECT_EQ(Plan("import").status, 2);
  EXPECT_EQ(Plan("import " + source + " --ignore a,,b").status, 2);
}

TEST_F(ExchangeCommand, ExportSaysWhatItWroteAndWhatItMadeUp) {
  const std::string checkpoint = MakeCheckpoint(), to = folder_ + "/written/home";
  const ProgramResult result = Plan("export " + checkpoint + " -o " + to + " --shard-size 100KB --dtype bf16");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(StartsWith("wrote "), HasSubstr("nemotron_h_omni after step 4, 221,272 parameters")));
  EXPECT_THAT(result.err, HasSubstr("made up: vision_model.radio_model.model.patch_generator.video_embedder.weight"));
  EXPECT_EQ(result.err.find('\r'), std::string::npos) << "no progress where there is no terminal";
  EXPECT_THAT(Left(), UnorderedElementsAre("home"));
  const ProgramResult again = Plan("export " + checkpoint + " -o " + to);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("is not empty"));
  const ProgramResult other = Plan("export " + checkpoint + " -o " + folder_ + "/written/other --json");
  EXPECT_EQ(other.status, 0) << other.err;
  const json data = json::parse(other.out);
  EXPECT_EQ(data["dtype"], "fp32");
  EXPECT_EQ(data["step"], 4);
  EXPECT_EQ(data["shards"].size(), 1U);
  for (const char* wrong : {" --shard-size 5", " --shard-size much", " --dtype fp8", " --ignore a", " --module x"}) {
    const ProgramResult refused = Plan("export " + checkpoint + " -o " + folder_ + "/written/wrong" + wrong);
    EXPECT_EQ(refused.status, std::string(wrong) == " --module x"       ? 1
                              : std::string(wrong) == " --shard-size 5" ? 0
                                                                        : 2)
        << wrong << refused.err;
    std::filesystem::remove_all(folder_ + "/written/wrong");
  }
  EXPECT_EQ(Plan("export " + checkpoint).status, 2);
  EXPECT_EQ(Plan("export " + folder_ + " -o " + folder_ + "/written/no_run").status, 2);
}

TEST_F(ExchangeCommand, ADifferenceFromTheSourceIsOneAndADamagedCheckpointThirteen) {
  const std::string checkpoint = MakeCheckpoint();
  ASSERT_EQ(Plan("export " + checkpoint + " -o " + folder_ + "/source").status, 0);
  std::string config = Read("source/config.json");
  config.replace(config.find("\"num_experts_per_tok\": 2"), 24, "\"num_experts_per_tok\": 3");
  Write("source/config.json", config);
  const std::string to = " -o " + folder_ + "/written/home";
  const ProgramResult differs = Plan("export " + checkpoint + to + " --like " + folder_ + "/source");
  EXPECT_EQ(differs.status, 1);
  EXPECT_THAT(differs.err, HasSubstr("text_config.num_experts_per_tok = 3 is not that of the run: module language "
                                     "moe.top_k is 2"));
  const std::string shard = checkpoint + "/rank-00000.safetensors";
  const int64_t at = SafetensorsFile::Open(shard)->Find("language.lm_head.weight")->offset;
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(at).put(byte).flush();
  const ProgramResult damaged = Plan("export " + checkpoint + to);
  EXPECT_EQ(damaged.status, 13) << damaged.err;
  EXPECT_THAT(damaged.err, HasSubstr("rank-00000"));
  EXPECT_THAT(Left(), IsEmpty());
}

// A limit on the size of files is the full disk that a test can have.
TEST_F(ExchangeCommand, AFullDiskLeavesNothing) {
  const std::string checkpoint = MakeCheckpoint();
  const ProgramResult full = Shell("(trap '' XFSZ; ulimit -f 100; " + InBuild("bin/plan") + " export " + checkpoint +
                                   " -o " + folder_ + "/written/home)");
  EXPECT_EQ(full.status, 2);
  EXPECT_THAT(full.err, AllOf(HasSubstr("cannot write "), HasSubstr("File too large")));
  EXPECT_THAT(Left(), IsEmpty());
}

// Of commands in a folder in which the model of `source` is imported.
class InitOfImported : public ExchangeCommand {
 protected:
  void SetUp() override {
    ExchangeCommand::SetUp();
    WriteLanguage([](auto&) {});
    std::filesystem::create_directories(folder_ + "/models");
  }
  ProgramResult InFolder(const std::string& arguments) {
    return Shell("cd " + folder_ + " && " + InBuild("bin/plan") + " " + arguments);
  }
  ProgramResult Init(const std::string& arguments) {
    return InFolder("init --gpus 2 --candidates 3 --best 1 --model " + arguments);
  }
};

// A folder may be called like a number or a word of YAML.
TEST_F(InitOfImported, ReadsTheFolderOfAnyName) {
  for (const auto& [name, written] :
       std::vector<std::pair<std::string, std::string>>{{"null", "\"null\""},
                                                        {"1000", "\"1000\""},
                                                        {"1.5", "\"1.5\""},
                                                        {"true", "\"true\""},
                                                        {"drawn", "./drawn"},
                                                        {"it's a \"model\" #1", R"("it's a \"model\" #1")"}}) {
    std::filesystem::rename(folder_ + "/source", folder_ + "/" + name);
    Write("name", name);
    EXPECT_EQ(InFolder("import \"$(cat name)\" -o model.yaml --replace").status, 0) << name;
    EXPECT_THAT(Read("model.yaml"), HasSubstr("\n# initialize: {from: " + written + "}\n"));
    const ProgramResult made = Init("model.yaml --replace -o mine.yaml");
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.err, HasSubstr("it begins with the weights of "));
    EXPECT_THAT(Read("mine.yaml"), HasSubstr("initialize: {from: "));
    EXPECT_EQ(InFolder("weights mine.yaml").status, 0) << name;
    std::filesystem::rename(folder_ + "/" + name, folder_ + "/source");
  }
}

// A key that no weight depends on leaves them as they are.
TEST_F(InitOfImported, BeginsWithTheWeightsWhereOverridesLeaveTheirShapes) {
  EXPECT_EQ(InFolder("import source -o models/model.yaml").status, 0);
  const ProgramResult same = Init("models/model.yaml models.nemotron_h.moe.aux_loss=1e-4");
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, AllOf(HasSubstr("initialize: {from: source}\n"), HasSubstr("aux_loss: ")));
  const ProgramResult other = Init("models/model.yaml models.nemotron_h.moe.ffn=64");
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_THAT(other.out, ::testing::Not(HasSubstr("initialize")));
  EXPECT_THAT(
      other.err,
      AllOf(HasSubstr("it begins with drawn weights, and not with those of source: the weights do not fit the "
                      "plan: "),
            HasSubstr("/source: shape: "), HasSubstr("experts.N.up_proj.weight is [48, 64], the model's is [64, 64]"),
            ::testing::Not(HasSubstr("plan-init-"))));
  const auto said_of_weights = [&](const std::string& words) {
    return nlohmann::json::parse(Init("models/model.yaml --json " + words).out)["weights"].get<std::string>();
  };
  EXPECT_EQ(said_of_weights(""), "it begins with the weights of source (initialize.from)");
  EXPECT_THAT(said_of_weights("models.nemotron_h.moe.ffn=64"), HasSubstr("it begins with drawn weights"));
}

TEST_F(InitOfImported, FindsTheFolderBehindALink) {
  std::filesystem::create_directories(folder_ + "/store/models");
  std::filesystem::remove(folder_ + "/models");
  std::filesystem::create_directory_symlink("store/models", folder_ + "/models");
  EXPECT_EQ(InFolder("import source -o models/model.yaml").status, 0);
  for (const char* file : {"mine.yaml", "models/mine.yaml", "written/mine.yaml"}) {
    const ProgramResult made = Init(std::string("models/model.yaml -o ") + file);
    EXPECT_EQ(made.status, 0) << file << made.err;
    EXPECT_THAT(made.err, HasSubstr("it begins with the weights of models/../../source (initialize.from)\n"));
    EXPECT_EQ(InFolder(std::string("weights ") + file).status, 0) << file;
  }
  EXPECT_EQ(InFolder("import source -o written/other.yaml").status, 0);
  const ProgramResult extends = Init("written/other.yaml -o models/of_other.yaml");
  EXPECT_EQ(extends.status, 0) << extends.err;
  EXPECT_THAT(Read("models/of_other.yaml"), HasSubstr("\nextends: [../../written/other.yaml]\n"));
}

// Overrides name files from the current folder, the recipe from its own.
TEST_F(InitOfImported, NamesTheFilesOfOverridesFromItsFolder) {
  EXPECT_EQ(InFolder("import source -o models/model.yaml").status, 0);
  const ProgramResult made = Init(
      "models/model.yaml -o written/mine.yaml 'initialize.sources=[{for: language, from: source}]' "
      "launch.restarts=1 launch.fallbacks=fewer.yaml");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(Read("written/mine.yaml"), AllOf(HasSubstr("from: ../source}"), HasSubstr("fallbacks: ../fewer.yaml}")));
  EXPECT_EQ(InFolder("weights written/mine.yaml").status, 0);
}

// `plan import`, then `plan init`: the recipe begins with the weights, wherever the three files are.
TEST_F(ExchangeCommand, AFirstRecipeOfAnImportedModelBeginsWithItsWeights) {
  const std::string source = WriteLanguage([](auto&) {}), model = folder_ + "/models/model.yaml";
  std::filesystem::create_directories(folder_ + "/models");
  std::filesystem::create_directories(folder_ + "/written");
  const auto in_folder = [&](const std::string& arguments) {
    return Shell("cd " + folder_ + " && " + InBuild("bin/plan") + " " + arguments);
  };
  EXPECT_EQ(in_folder("import source -o models/model.yaml").status, 0);
  EXPECT_THAT(Read("models/model.yaml"), HasSubstr("\n# initialize: {from: ../source}\n"));
  const std::string few = " --gpus 2 --candidates 3 --best 1 ";
  const ProgramResult made = in_folder("init --model models/model.yaml -o written/mine.yaml" + few);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(Read("written/mine.yaml"), HasSubstr("initialize: {from: ../source}\n"));
  EXPECT_THAT(made.err, HasSubstr("it begins with the weights of source (initialize.from)\n"));
  EXPECT_EQ(in_folder("weights written/mine.yaml").status, 0) << "they fit";
  // What is said of it otherwise stays.
  const ProgramResult other = in_folder("init --model models/model.yaml initialize.from=models/../source" + few);
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("initialize: {from: source}\n"));
  // Another model under its name.
  Shell("sed -i 's/hidden: .*#/hidden: 128 #/' " + model);
  const ProgramResult misfit = in_folder("init --model models/model.yaml" + few);
  EXPECT_EQ(misfit.status, 0) << misfit.err;
  EXPECT_THAT(misfit.out, Not(HasSubstr("initialize")));
  EXPECT_THAT(misfit.err, HasSubstr("drawn weights, and not with those of source: the weights do not fit"));
  std::filesystem::remove_all(source);
  EXPECT_THAT(in_folder("init --model models/model.yaml" + few).err, HasSubstr("they are not on this machine"));
}

}  // namespace
}  // namespace planwright

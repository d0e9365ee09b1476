// What the image processor of a published folder says, in the words of `data`, and what no recipe can say.
#include "planner/cli/first/image_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "planner/base/files/file_io.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What a class may lack.
const std::string kSaid = R"("resample": 3, "image_mean": 0.5, "image_std": 0.5)";

const EncoderSizes kQwen = {.kind = "qwen_vit", .patch = 16, .pixel_shuffle = 2, .max_image = 768, .frames = 2},
                   kSiglip = {.kind = "siglip_vit", .patch = 14, .pixel_shuffle = 1, .max_image = 384};

class ImageProcessorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "processorXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<ImageProcessor> Read(const EncoderSizes& encoder, const std::string& text,
                                      const std::string& name = "preprocessor_config.json") {
    for (const auto& old : std::filesystem::directory_iterator(folder_)) std::filesystem::remove(old.path());
    if (!text.empty()) Write(name, text);
    return ReadImageProcessor(folder_, encoder, asked_);
  }
  void Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/" + name, text).ok());
  }

  std::string folder_;
  YamlNode asked_{.kind = YamlNode::Kind::kMap};
};

TEST_F(ImageProcessorTest, OfQwenHasItsBounds) {
  const std::string released = R"({"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16,
      "size": {"shortest_edge": 4096, "longest_edge": 16777216},
      "temporal_patch_size": 2, "merge_size": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})";
  const auto processor = Read(kQwen, released);
  ASSERT_TRUE(processor.ok()) << processor.status();
  EXPECT_EQ(processor->resize, "bicubic_8bit");
  EXPECT_EQ(processor->grid, "smart_resize");
  EXPECT_EQ(processor->least_pixels, 4096);
  EXPECT_EQ(processor->most_pixels, 16777216);
  EXPECT_THAT(processor->notes, IsEmpty());
  // As transformers 5 saves a processor as a whole, and with the older names of the bounds.
  const auto whole = Read(kQwen, R"({"image_processor": {"min_pixels": 1024, "max_pixels": 2048, "resample": 2}})",
                          "processor_config.json");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->resize, "bilinear_8bit");
  EXPECT_EQ(whole->least_pixels, 1024);
  EXPECT_EQ(whole->most_pixels, 2048);
}

TEST_F(ImageProcessorTest, OfSiglipHasItsFilter) {
  for (const auto& [resample, resize] : {std::pair("2", "bilinear_8bit"), std::pair("3", "bicubic_8bit")}) {
    const auto processor =
        Read(kSiglip, std::string(R"({"size": {"height": 384, "width": 384}, "resample": )") + resample + "}");
    ASSERT_TRUE(processor.ok()) << processor.status();
    EXPECT_EQ(processor->resize, resize);
    EXPECT_EQ(processor->grid, "square");
  }
}

TEST_F(ImageProcessorTest, WithoutAFileItIsTold) {
  const auto processor = Read(kSiglip, "");
  ASSERT_TRUE(processor.ok()) << processor.status();
  EXPECT_EQ(processor->resize, "bicubic_8bit");
  EXPECT_THAT(processor->notes, ElementsAre(HasSubstr("has no preprocessor_config.json")));
  EXPECT_EQ(Read(kQwen, "")->least_pixels, 65536);
  EXPECT_THAT(Read({.kind = "own_vit"}, "")->notes,
              ElementsAre(HasSubstr("images of kind own_vit are made is not known")));
  // Its processor has no settings that a recipe takes.
  EXPECT_THAT(Read({.kind = "radio_vit"}, "")->notes, IsEmpty());
}

// As transformers takes them: settings within processor_config.json before those of the other file.
TEST_F(ImageProcessorTest, OfTwoFilesTheOneOfTransformersIsTaken) {
  const std::string size = R"("size": {"height": 384, "width": 384})";
  ASSERT_TRUE(Read(kSiglip, R"({"image_processor_type": "SiglipImageProcessor", "resample": 3, )" + size + "}").ok());
  Write("processor_config.json", R"({"image_processor": {"image_processor_type": "SiglipImageProcessorFast",
                                     "resample": 2, "device": null, )" +
                                     size + "}}");
  const auto both = ReadImageProcessor(folder_, kSiglip, asked_);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->resize, "bilinear_8bit");
  EXPECT_THAT(both->notes, ElementsAre(AllOf(HasSubstr("differ in resample: the latter is taken"))));
  // What is not taken is not read either.
  Write("preprocessor_config.json", "{");
  EXPECT_THAT(ReadImageProcessor(folder_, kSiglip, asked_)->notes, IsEmpty());
  // The settings of a whole processor without those of images.
  Write("processor_config.json", R"({"processor_class": "LlavaProcessor", "patch_size": 14, "image_processor": null})");
  Write("preprocessor_config.json",
        R"({"image_processor_type": "SiglipFeatureExtractor", "resample": 3, )" + size + "}");
  EXPECT_EQ(ReadImageProcessor(folder_, kSiglip, asked_)->resize, "bicubic_8bit");
  EXPECT_EQ(Read(kSiglip, R"({"image_processor": 7})", "processor_config.json").status().message(),
            folder_ + "/processor_config.json: image_processor is no object");
}

TEST_F(ImageProcessorTest, ARefusalNamesAllThatIsInTheWay) {
  EXPECT_THAT(
      std::string(Read(kSiglip, R"({"image_processor": {"resample": 5}})", "processor_config.json").status().message()),
      AllOf(HasSubstr("processor_config.json: image_processor.resample = 5 cannot be expressed"),
            HasSubstr("processor_config.json and preprocessor_config.json they are made with bicubic_8bit")));
}

TEST_F(ImageProcessorTest, ALinkToNothingIsTold) {
  std::filesystem::create_symlink("../blobs/1234", folder_ + "/preprocessor_config.json");
  const absl::Status status = ReadImageProcessor(folder_, kSiglip, asked_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a link to ../blobs/1234, which is not there"));
}

// All of it at once.
TEST_F(ImageProcessorTest, WhatCannotBeExpressedIsRefusedByKey) {
  const auto qwen = Read(kQwen, R"({"resample": 1, "image_mean": [0.48, 0.46, 0.41], "patch_size": 14, "merge_size": 4,
                                    "do_rescale": false})");
  EXPECT_EQ(qwen.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(qwen.status().message()),
              AllOf(HasSubstr("resample = 1 cannot be expressed"), HasSubstr("image_mean = [0.48,0.46,0.41]"),
                    HasSubstr("patch_size = 14 cannot be expressed: by config.json a patch has a side of 16"),
                    HasSubstr("merge_size = 4"), HasSubstr("do_rescale = false")));
  const auto siglip = Read(kSiglip, R"({"size": {"height": 224, "width": 224}})");
  EXPECT_THAT(std::string(siglip.status().message()),
              HasSubstr(R"(images are squares: {"height": 384, "width": 384} is expected)"));
  EXPECT_THAT(std::string(siglip.status().message()),
              HasSubstr("preprocessor_config.json they are made with bicubic_8bit and square"));
  EXPECT_EQ(Read(kQwen, "{").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read(kQwen, "[]").status().code(), absl::StatusCode::kInvalidArgument);
}

// What overrides say comes before the folder, and notes say what is done.
TEST_F(ImageProcessorTest, OverridesComeFirst) {
  const std::string siglip = R"({"image_processor_type": "SiglipImageProcessor",
                                 "size": {"height": 384, "width": 384}, "resample": )";
  EXPECT_THAT(std::string(Read(kSiglip, siglip + "0}").status().message()),
              HasSubstr("data.resize=bicubic_8bit takes that filter nevertheless"));
  ASSERT_TRUE(LayOverrides({"data.resize=bilinear_8bit", "data.max_patches=100"}, asked_).ok());
  EXPECT_EQ(Read(kSiglip, siglip + "3}")->resize, "bilinear_8bit");
  EXPECT_THAT(Read(kSiglip, siglip + "3}")->notes,
              ElementsAre(HasSubstr("resample = 3, bicubic_8bit: images are made with bilinear_8bit, as data.resize")));
  EXPECT_THAT(Read(kSiglip, siglip + "0}")->notes, ElementsAre(HasSubstr("resample = 0: images are made with bilin")));
  EXPECT_THAT(Read(kSiglip, siglip + "2}")->notes, IsEmpty());
  EXPECT_THAT(Read(kSiglip, "")->notes, ElementsAre(HasSubstr("are made with bilinear_8bit, as data.resize asks")));
  EXPECT_THAT(
      Read({.kind = "own_vit"}, "")->notes,
      ElementsAre(HasSubstr("data.resize=bilinear_8bit and data.grid=ceil are what was asked for and the def")));
  EXPECT_THAT(Read({.kind = "radio_vit"}, "{bad")->notes,
              ElementsAre(HasSubstr("preprocessor_config.json is not read: images of kind radio_vit are made with "
                                    "bilinear_8bit and round_half_even")));
  EXPECT_THAT(Read(kQwen, R"({"min_pixels": 4096, "max_pixels": 500000, )" + kSaid + "}")->notes,
              ElementsAre(HasSubstr("resample = 3, bicubic_8bit")));
}

// A bound that nobody wrote is told as such, and overrides take another one.
TEST_F(ImageProcessorTest, BoundsOfTheKindMayNotFit) {
  const EncoderSizes toy = {.kind = "qwen_vit", .patch = 16, .pixel_shuffle = 2, .max_image = 64, .frames = 2};
  EXPECT_THAT(std::string(Read(toy, "{" + kSaid + "}").status().message()),
              HasSubstr("images of at least 65,536 pixels (the least is that of qwen_vit) cannot be expressed: by "
                        "config.json one has at most 4,096; data.min_patches=N, in patches, takes another bound"));
  EXPECT_THAT(std::string(Read(kQwen, R"({"max_pixels": 2048, )" + kSaid + "}").status().message()),
              HasSubstr("at least 65,536 and at most 2,048 pixels (the least is that of qwen_vit) cannot"));
  ASSERT_TRUE(LayOverrides({"data.min_patches=4"}, asked_).ok());
  EXPECT_TRUE(Read(toy, "{" + kSaid + "}").ok());
}

// With a rule of sizes that no processor has, bounds in pixels are taken, and sizes are told.
TEST_F(ImageProcessorTest, OtherRulesOfSizesTakeBounds) {
  ASSERT_TRUE(LayOverrides({"data.grid=ceil"}, asked_).ok());
  for (const std::string bounds :
       {R"("min_pixels": 2048, "max_pixels": 65536)", R"("size": {"min_pixels": 2048, "max_pixels": 65536})"}) {
    const auto taken = Read(kQwen, "{" + bounds + ", " + kSaid + R"(, "image_processor_type": "OwnImageProcessor"})");
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->grid, "ceil");
    EXPECT_EQ(taken->least_pixels, 2048);
    EXPECT_EQ(taken->most_pixels, 65536);
    EXPECT_THAT(taken->notes, ElementsAre(HasSubstr("OwnImageProcessor")));
  }
  const std::string sides = R"("size": {"shortest_edge": 2048, "longest_edge": 65536}, "patch_size": 16, )";
  const auto qwen = Read(kQwen, R"({"image_processor_type": "Qwen2VLImageProcessor", )" + sides + kSaid + "}");
  ASSERT_TRUE(qwen.ok()) << qwen.status();
  EXPECT_EQ(qwen->least_pixels, 2048);
  EXPECT_EQ(qwen->most_pixels, 65536);
  EXPECT_THAT(qwen->notes, ElementsAre(HasSubstr("as with data.grid smart_resize; ceil is taken")));
  // Lengths of sides are no numbers of pixels.
  for (const std::string size : {R"({"height": 64, "width": 64})", R"({"shortest_edge": 64})", "64", R"("a")"}) {
    const auto lengths = Read(kQwen, R"({"size": )" + size + ", " + kSaid + "}");
    ASSERT_TRUE(lengths.ok()) << lengths.status();
    EXPECT_EQ(lengths->least_pixels, 65536);
    EXPECT_THAT(lengths->notes, ElementsAre(HasSubstr("is not read: with data.grid ceil an image")));
  }
  EXPECT_THAT(std::string(Read(kQwen, R"({"min_pixels": 4096, "max_pixels": 2048})").status().message()),
              HasSubstr("images of at least 4,096 and at most 2,048 pixels cannot be expressed"));
}

// Recipes say bounds in patches of 256 pixels here.
TEST_F(ImageProcessorTest, BoundsThatAreNoWholePatchesAreTold) {
  const auto odd = Read(kQwen, R"({"min_pixels": 3136, "max_pixels": 500000, )" + kSaid + "}");
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_THAT(odd->notes,
              ElementsAre(HasSubstr("3,136, are no whole patches: data.min_patches=12 are 3,072, and 13 are 3,328"),
                          HasSubstr("data.max_patches=1953 are 499,968, and 1954 are 500,224")));
  // No image of 768 x 768 pixels reaches it.
  EXPECT_THAT(Read(kQwen, R"({"min_pixels": 4096, "max_pixels": 1e21, )" + kSaid + "}")->notes, IsEmpty());
}

// What a file does not say is as its class has it.
TEST_F(ImageProcessorTest, AClassHasSettingsOfItsOwn) {
  const std::string size = R"("size": {"height": 384, "width": 384})";
  const auto of_type = [](const std::string& type, const std::string& settings) {
    return R"({"image_processor_type": ")" + type + R"(", )" + settings + "}";
  };
  EXPECT_EQ(Read(kSiglip, of_type("SiglipImageProcessor", size))->resize, "bicubic_8bit");
  EXPECT_EQ(Read(kSiglip, of_type("ViTImageProcessorFast", size))->resize, "bilinear_8bit");
  EXPECT_EQ(Read(kSiglip, R"({"feature_extractor_type": "ViTFeatureExtractor", "size": 384})")->resize,
            "bilinear_8bit");
  EXPECT_TRUE(Read(kSiglip, of_type("CLIPImageProcessor", size + R"(, "do_center_crop": false, )" + kSaid)).ok());
  const auto refused = [&](const EncoderSizes& encoder, const std::string& settings) {
    return std::string(Read(encoder, settings).status().message());
  };
  EXPECT_THAT(
      refused(kSiglip, of_type("SiglipImageProcessor", R"("resample": 2)")),
      HasSubstr(R"(size = {"height":224,"width":224}, as a SiglipImageProcessor has it where the file does not )"
                "say it, cannot be expressed: by config.json images are squares: {\"height\": 384"));
  EXPECT_THAT(refused(kSiglip, of_type("CLIPImageProcessor", size)),
              AllOf(HasSubstr("image_mean = [0.48145466,0.4578275,0.40821073], as a CLIPImageProcessor has it"),
                    HasSubstr("do_center_crop = true, as a CLIPImageProcessor has it")));
  EXPECT_THAT(refused(kQwen, of_type("Qwen2VLImageProcessor", R"("patch_size": 16)")),
              HasSubstr("image_std = [0.26862954,0.26130258,0.27577711], as a Qwen2VLImageProcessor has it"));
  const auto bounds =
      Read(kQwen, of_type("Qwen2VLImageProcessor", R"("patch_size": 16, "max_pixels": 65536, )" + kSaid));
  ASSERT_TRUE(bounds.ok()) << bounds.status();
  EXPECT_EQ(bounds->least_pixels, 3136);
  EXPECT_EQ(bounds->most_pixels, 65536);
  // Another rule of sizes than the kind's.
  EXPECT_THAT(refused(kSiglip, of_type("Qwen2VLImageProcessor", size)),
              HasSubstr("as with data.grid smart_resize, and those of a siglip_vit as with square"));
  EXPECT_THAT(refused(kQwen, of_type("SiglipImageProcessor", size)), HasSubstr("and those of a qwen_vit"));
  // Classes that are not known.
  EXPECT_THAT(Read(kSiglip, of_type("PixtralImageProcessor", size))->notes,
              ElementsAre(AllOf(HasSubstr(R"(image_processor_type = "PixtralImageProcessor" is not known)"),
                                HasSubstr("; resample, image_mean, image_std not said: as of siglip_vit"))));
  EXPECT_THAT(Read(kSiglip, "{" + size + ", " + kSaid + R"(, "image_processor_type": 5})")->notes,
              ElementsAre(HasSubstr("image_processor_type = 5 is not known")));
  EXPECT_THAT(Read(kSiglip, "{" + size + "}")->notes,
              ElementsAre(HasSubstr("names no image_processor_type: resample, image_mean, image_std not said")));
}

// Each setting that changes pixels, alone, of a file that is right otherwise.
TEST_F(ImageProcessorTest, EverySettingThatChangesPixelsIsReadOrRefused) {
  const std::vector<std::pair<std::string, std::string>> of_both = {
      {R"("rescale_factor": 0.01)", "1/255 is expected"},
      {R"("rescale_factor": "1/255")", "1/255 is expected"},
      {R"("do_rescale": false)", "true is expected"},
      {R"("do_normalize": false)", "true is expected"},
      {R"("do_convert_rgb": false)", "true is expected"},
      {R"("do_resize": false)", "true is expected"},
      {R"("do_resize": "yes")", "images are resized: true is expected"},
      {R"("do_pad": true)", "images get no border: false is expected"},
      {R"("do_center_crop": true)", "images are not cut: false is expected"},
      {R"("do_center_crop": 1)", "images are not cut: false is expected"},
      {R"("resample": "bicubic")", "bilinearly (2) or bicubically (3)"},
      {R"("image_mean": 0.4)", "are normalized by [0.5,0.5,0.5]"},
      {R"("image_std": [0.5, 0.5])", "are normalized by [0.5,0.5,0.5]"},
  };
  const std::vector<std::pair<std::string, std::string>> of_siglip = {
      {R"("size": 384)", "it is the length of the shorter side"},
      {R"("size": {"shortest_edge": 384})", R"({"height": 384, "width": 384} is expected)"},
      {R"("size": {"height": 384, "width": 384, "depth": 3})", "is expected"},
      {R"("size": {"height": 384, "width": 383})", "is expected"},
      {R"("size": {"height": 384, "width": 384}, "do_center_crop": true, "crop_size": 336)", "images are not cut"},
  };
  const std::vector<std::pair<std::string, std::string>> of_qwen = {
      {R"("temporal_patch_size": 1)", "by config.json the frames of a patch are 2"},
      {R"("patch_size": 0)", "a patch has a side of 16"},
      {R"("merge_size": "2")", "is 2"},
      {R"("size": 4096)", R"({"shortest_edge": LEAST, "longest_edge": MOST} is expected)"},
      {R"("size": {"height": 64, "width": 64})", "is expected"},
      {R"("size": {"shortest_edge": 4096})", "longest_edge is missing"},
      {R"("size": {"shortest_edge": "a", "longest_edge": []})", "shortest_edge is a number of pixels above 0"},
      {R"("min_pixels": 0)", "min_pixels = 0 cannot be expressed: min_pixels is a number of pixels above 0"},
      {R"("min_pixels": -5)", "min_pixels is a number"},
      {R"("max_pixels": "many")", "max_pixels is a number"},
      {R"("max_pixels": 4096.5)", "max_pixels is a number"},
      {R"("min_pixels": 8192, "max_pixels": 4096)",
       "images of at least 8,192 and at most 4,096 pixels cannot be expressed"},
      {R"("max_pixels": 1023, "min_pixels": 1)", "the square of an image token has 1024"},
      {R"("min_pixels": 589825)", "by config.json one has at most 589,824"},
  };
  for (const auto& [encoder, settings] : {std::pair(kQwen, of_both), std::pair(kSiglip, of_both),
                                          std::pair(kSiglip, of_siglip), std::pair(kQwen, of_qwen)}) {
    for (const auto& [setting, expected] : settings) {
      const auto refused = Read(encoder, "{" + setting + "}");
      EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << setting;
      EXPECT_THAT(std::string(refused.status().message()), HasSubstr(expected)) << setting;
    }
  }
  const std::string harmless = R"({"image_processor_type": "SiglipImageProcessor", "size": [384, 384],
      "do_center_crop": true, "crop_size": 384, "image_mean": 0.5, "rescale_factor": 0.00392156862745098,
      "do_pad": null, "do_convert_rgb": true, "processor_class": "LlavaProcessor", "_hidden": 1, "frobnicate": 7,
      "auto_map": {}})";
  const auto same = Read(kSiglip, harmless);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_THAT(same->notes, ElementsAre(HasSubstr("not read: auto_map, frobnicate")));
}

}  // namespace
}  // namespace planwright

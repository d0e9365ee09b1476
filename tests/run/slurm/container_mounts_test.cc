// What a container of a job sees, of real folders.
#include "planner/run/slurm/container_mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "planner/run/launch/rank_environment.h"
#include "planner/run/slurm/program_libraries.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Mounts : public ::testing::Test {
 protected:
  Mounts() {
    std::string folder = ::testing::TempDir() + "mountsXXXXXX";
    folder_ = fs::canonical(mkdtemp(folder.data())).string();
    for (const char* part : {"/bin", "/data/wiki", "/runs/a"}) fs::create_directories(folder_ + part);
    for (const char* file : {"/bin/executor", "/data/wiki/0.tar"}) std::ofstream(folder_ + file) << "x";
  }
  ~Mounts() override { fs::remove_all(folder_); }

  NeededFile Of(const std::string& path, bool writes = false) const {
    const std::string whole = folder_ + path;
    return {.what = "it", .path = whole, .writes = writes, .here = fs::exists(whole)};
  }

  std::string folder_;
  LaunchPlan launch_;
};

TEST_F(Mounts, WhatIsHereIsMountedAtItsOwnPath) {
  std::vector<NeededFile> needed = {Of("/runs/a", true), Of("/bin/executor"), Of("/data/wiki"), Of("/data/wiki/0.tar")};
  const ContainerMounts mounts = MountsFor(launch_, needed);
  EXPECT_THAT(mounts.problems, IsEmpty());
  EXPECT_THAT(mounts.all,
              ElementsAre(folder_ + "/bin:" + folder_ + "/bin:ro", folder_ + "/data/wiki:" + folder_ + "/data/wiki:ro",
                          folder_ + "/runs/a:" + folder_ + "/runs/a"));
  EXPECT_EQ(needed[0].seen, "mounted");
  EXPECT_EQ(needed[1].seen, "mounted, read-only");
}

TEST_F(Mounts, AFolderInAnotherIsMountedIfItIsWrittenTo) {
  std::vector<NeededFile> needed = {Of("/runs/a", true), Of("/runs"), Of("/data"), Of("/data/wiki")};
  EXPECT_THAT(MountsFor(launch_, needed).all,
              ElementsAre(folder_ + "/data:" + folder_ + "/data:ro", folder_ + "/runs:" + folder_ + "/runs:ro",
                          folder_ + "/runs/a:" + folder_ + "/runs/a"));
}

// Data of the node that the recipe has inside of a folder that is mounted anyway. A place for it cannot be made there.
TEST_F(Mounts, NoneHidesAnotherOne) {
  launch_.mounts = {"/usr/share:" + folder_ + "/data/wiki/extra:ro"};
  std::vector<NeededFile> needed = {Of("/data/wiki/0.tar")};
  EXPECT_THAT(MountsFor(launch_, needed).problems,
              ElementsAre(AllOf(HasSubstr("nothing can be mounted at " + folder_ + "/data/wiki/extra"),
                                HasSubstr("make " + folder_ + "/data/wiki/extra"))));
  fs::create_directory(folder_ + "/data/wiki/extra");
  const ContainerMounts mounts = MountsFor(launch_, needed);
  EXPECT_THAT(mounts.problems, IsEmpty());
  EXPECT_THAT(mounts.all, ElementsAre(folder_ + "/data/wiki:" + folder_ + "/data/wiki:ro", launch_.mounts[0]));
}

TEST_F(Mounts, WhatTheRecipeMountsNeedsNoOther) {
  launch_.mounts = {folder_ + "/data:/shards:ro", folder_ + ":" + folder_};
  std::vector<NeededFile> needed = {
      Of("/runs/a", true), Of("/bin/executor"), {.what = "data", .path = "/shards/wiki/0.tar"}};
  const ContainerMounts mounts = MountsFor(launch_, needed);
  EXPECT_THAT(mounts.problems, IsEmpty());
  EXPECT_EQ(mounts.all, launch_.mounts);
  EXPECT_EQ(needed[2].seen, "launch.slurm.mounts: " + folder_ + "/data");
}

TEST_F(Mounts, WhatNobodySeesIsRefusedWithTheLineToWrite) {
  std::vector<NeededFile> needed = {{.what = "weights", .path = "/no_such/weights"}};
  EXPECT_THAT(MountsFor(launch_, needed).problems,
              ElementsAre(AllOf(HasSubstr("no container would see weights /no_such/weights"),
                                HasSubstr("launch.slurm.mounts: [FOLDER_OF_THE_NODE:/no_such]"))));
  EXPECT_EQ(needed[0].seen, "");
  launch_.mounts = {folder_ + "/data:/shards"};
  needed = {{.what = "data", .path = "/shards/wikipedia/0.tar"}};
  EXPECT_THAT(MountsFor(launch_, needed).problems,
              ElementsAre(HasSubstr("is " + folder_ + "/data/wikipedia/0.tar of the node by launch.slurm.mounts")));
}

TEST_F(Mounts, AReadOnlyFolderIsNotWrittenTo) {
  launch_.mounts = {folder_ + ":" + folder_ + ":rbind+ro"};
  std::vector<NeededFile> needed = {Of("/runs/a", true), Of("/bin/executor")};
  EXPECT_THAT(MountsFor(launch_, needed).problems,
              ElementsAre(HasSubstr("is written to, and launch.slurm.mounts has")));
}

// srun has no way to say it.
TEST_F(Mounts, APathThatIsNoMountIsRefused) {
  for (const char* name : {"/a,b", "/a:b", "/a b"}) {
    fs::create_directories(folder_ + name);
    std::vector<NeededFile> needed = {Of(name)};
    EXPECT_THAT(MountsFor(launch_, needed).problems, ElementsAre(HasSubstr("cannot be given a mount"))) << name;
  }
}

TEST_F(Mounts, AFolderOfTheRecipeThatIsNotHereIsTold) {
  launch_.mounts = {folder_ + "/dta:/data"};
  std::vector<NeededFile> needed;
  EXPECT_THAT(MountsFor(launch_, needed).notes, ElementsAre(AllOf(HasSubstr("/dta is not on this machine"),
                                                                  HasSubstr("did you mean " + folder_ + "/data?"))));
}

TEST_F(Mounts, AnImageThatIsNotHereIsTold) {
  std::ofstream(folder_ + "/train.sqsh") << "hsqs";
  std::vector<NeededFile> needed;
  for (const std::string& image : {folder_ + "/train.sqsh", std::string("registry.example.com#team/train:2.1")}) {
    launch_.container = image;
    EXPECT_THAT(MountsFor(launch_, needed).notes, IsEmpty()) << image;
  }
  launch_.container = folder_ + "/tarin.sqsh";
  EXPECT_THAT(MountsFor(launch_, needed).notes,
              ElementsAre(AllOf(HasSubstr("launch.slurm.container: " + launch_.container + " is not on this machine"),
                                HasSubstr("did you mean " + folder_ + "/train.sqsh?"))));
}

TEST_F(Mounts, AnImageThatNoNodeTakesIsRefused) {
  std::ofstream(folder_ + "/train.sif") << "#!/usr/bin/env run-singularity";
  std::vector<NeededFile> needed;
  launch_.container = folder_ + "/train.sif";
  EXPECT_THAT(MountsFor(launch_, needed).problems, ElementsAre(HasSubstr("train.sif is no squashfs file")));
  launch_.container = folder_ + "/data";
  EXPECT_THAT(MountsFor(launch_, needed).problems,
              ElementsAre(AllOf(HasSubstr("/data is a folder"), HasSubstr("mksquashfs FOLDER FILE.sqsh"))));
}

// Of the system only the file itself: the image has its own /usr/bin.
TEST_F(Mounts, FoldersOfTheSystemStayThoseOfTheImage) {
  std::vector<NeededFile> needed = {{.what = "the executor", .path = "/usr/bin/env", .here = true}};
  EXPECT_THAT(MountsFor(launch_, needed).all, ElementsAre("/usr/bin/env:/usr/bin/env:ro"));
}

TEST(Libraries, AreWhereTheLoaderFindsThem) {
  const absl::StatusOr<std::vector<LoadedLibrary>> libraries = LibrariesOf("/proc/self/exe", OwnEnvironment());
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_THAT(*libraries,
              Contains(AllOf(Field(&LoadedLibrary::name, "libc.so.6"), Field(&LoadedLibrary::path, StartsWith("/")))));
  for (const LoadedLibrary& library : *libraries) EXPECT_TRUE(IsOfSystem(library.path)) << library.path;
  EXPECT_TRUE(IsOfSystem("/usr/lib/x/libc.so.6"));
  EXPECT_TRUE(IsOfSystem("/lib"));
  EXPECT_FALSE(IsOfSystem("/library/x.so"));
  EXPECT_FALSE(IsOfSystem("/home/me/.cache/torch/lib/libtorch.so"));
}

}  // namespace
}  // namespace planwright

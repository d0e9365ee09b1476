#include "planner/wire/connection/proof.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace planwright {
namespace {

constexpr Purpose kPurpose = {"test", "TESTASK1", "TESTSRV1", "the test"};
constexpr Purpose kOther = {"other", "TESTASK1", "TESTSRV1", "the test"};

// RFC 4231, cases 1, 2, 3 and 6 (a key longer than a block).
TEST(Proof, HmacIsThatOfTheStandard) {
  const auto hex = [](const std::string& key, const std::string& text) {
    return absl::BytesToHexString(HmacSha256(key, text));
  };
  EXPECT_EQ(hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hex(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Proof, DiffersForEachPurposeEndNonceAndSecret) {
  const std::string a(32, 'a'), b(32, 'b');
  const std::string proof = ServerProof(kPurpose, "s", a, b);
  EXPECT_EQ(proof.size(), kProofBytes);
  EXPECT_TRUE(SameProof(proof, ServerProof(kPurpose, "s", a, b)));
  for (const std::string& other :
       {ServerProof(kOther, "s", a, b), ClientProof(kPurpose, "s", a, b), ServerProof(kPurpose, "s", b, a),
        ServerProof(kPurpose, "t", a, b), ServerProof(kPurpose, "", a, b), std::string()})
    EXPECT_FALSE(SameProof(proof, other));
}

TEST(Proof, SecretsAreLongAndDiffer) {
  EXPECT_EQ(MakeSecret()->size(), 64u);
  EXPECT_NE(*MakeSecret(), *MakeSecret());
}

}  // namespace
}  // namespace planwright

// Axes of a grid of ranks, the two views of a module's ranks, and the arithmetic between ranks and coordinates.
// Formulas: facts 1.1 to 1.3. An axis is a direction of a grid; a dim is a dimension of a tensor.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

enum class Axis { kTp, kCp, kDp, kPp, kExpertTp, kEp, kExpertDp };

std::string_view AxisName(Axis axis);  // "tp", "expert_tp", ...
std::optional<Axis> AxisFromName(std::string_view name);

// The two factorisations of a module's ranks.
enum class View { kDense, kExpert };
std::string_view ViewName(View view);  // "dense", "expert"

// Axes of a view in declaration order; the first varies fastest.
inline constexpr std::array<Axis, 4> kDenseAxes = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
inline constexpr std::array<Axis, 4> kExpertAxes = {Axis::kExpertTp, Axis::kEp, Axis::kExpertDp, Axis::kPp};
const std::array<Axis, 4>& AxesOf(View view);

// One module's ranks: [first_rank, first_rank + ranks()), factored twice. Sizes are settled in topology/.
struct Grid {
  int first_rank = 0;
  int tp = 1, cp = 1, dp = 1, pp = 1;
  int expert_tp = 1, ep = 1, expert_dp = 1;

  int ranks() const { return tp * cp * dp * pp; }
  bool contains(int rank) const { return rank >= first_rank && rank < first_rank + ranks(); }
  int size(Axis axis) const;
  // Product of the sizes of `axes`.
  int size(const std::vector<Axis>& axes) const;
  bool operator==(const Grid&) const = default;
};

// Coordinate of `rank` (a member of the grid) along `axis`, in the view that owns the axis.
int CoordinateOf(const Grid& grid, int rank, Axis axis);

// Index of `rank` among the group of `axes` it belongs to, group members in ascending rank order.
int IndexInGroup(const Grid& grid, View view, const std::vector<Axis>& axes, int rank);

// The members, ascending, of the group over `axes` that `rank` belongs to.
std::vector<int> GroupOf(const Grid& grid, View view, const std::vector<Axis>& axes, int rank);

// All groups over `axes`: members ascending, groups ordered by ascending coordinate of the other axes,
// the first declared fastest (facts 1.1, ordered enumeration).
std::vector<std::vector<int>> GroupsOver(const Grid& grid, View view, const std::vector<Axis>& axes);

}  // namespace planwright

// The grid of a module's ranks: its axes, its two views, and the arithmetic between ranks and coordinates. An axis is a
// direction of a grid; a dim is a dimension of a tensor. Formulas: docs/layouts/grids.md#enumeration and #two-views.
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

// The two factorizations of a module's ranks: (tp, cp, dp, pp) and (expert_tp, ep, expert_dp, pp).
enum class View { kDense, kExpert };
std::string_view ViewName(View view);  // "dense", "expert"
std::optional<View> ViewFromName(std::string_view name);

// Axes of a view. Rank numbers ascend with the first axis fastest.
inline constexpr std::array<Axis, 4> kDenseAxes = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
inline constexpr std::array<Axis, 4> kExpertAxes = {Axis::kExpertTp, Axis::kEp, Axis::kExpertDp, Axis::kPp};
const std::array<Axis, 4>& AxesOf(View view);

// The ranks [first_rank, first_rank + ranks()) of a module. Both views have the same number of ranks. topology/
// computes the sizes.
struct Grid {
  int first_rank = 0;
  int tp = 1, cp = 1, dp = 1, pp = 1;
  int expert_tp = 1, ep = 1, expert_dp = 1;

  int ranks() const { return tp * cp * dp * pp; }
  bool contains(int rank) const { return rank >= first_rank && rank < first_rank + ranks(); }
  int size(Axis axis) const;
  int size(const std::vector<Axis>& axes) const;  // the product of their sizes
  bool operator==(const Grid&) const = default;
};

// The functions below take a rank of the grid, numbered over the world.

// The coordinate of `rank` along `axis`, in the view that has the axis.
int CoordinateOf(const Grid& grid, int rank, Axis axis);

// The group over `axes` that `rank` belongs to: the ranks that differ from it along these axes only, ascending.
std::vector<int> GroupOf(const Grid& grid, View view, const std::vector<Axis>& axes, int rank);

// The index of `rank` in its group over `axes`.
int IndexInGroup(const Grid& grid, View view, const std::vector<Axis>& axes, int rank);

// All groups over `axes`. Members ascend; groups ascend by the coordinates along the other axes, the first axis fastest
// (docs/layouts/grids.md#groups).
std::vector<std::vector<int>> GroupsOver(const Grid& grid, View view, const std::vector<Axis>& axes);

}  // namespace planwright

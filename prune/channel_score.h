/* channel_score.h - how much each channel of a weight matters, from its elements.
 *
 *   L1, L2       norm of the channel's filter   Li et al. 2017, "Pruning Filters for Efficient
 *                ConvNets", arXiv:1608.08710
 *   FPGM         sum of its distances to all other filters: a filter near the middle can be
 *                replaced by the others   He et al. 2019, arXiv:1811.00250
 *   BN_SCALE     |gamma| of a batch norm   Liu et al. 2017, "Network Slimming", arXiv:1708.06519
 *   LAMP         squared norm over the sum of those that are not smaller   Lee et al. 2021,
 *                arXiv:2010.07611, applied to whole channels
 *   RANDOM       uniform, by a seed: what every score should beat
 */
#ifndef ACCEL_PRUNE_CHANNEL_SCORE_H
#define ACCEL_PRUNE_CHANNEL_SCORE_H

#include "prune/prune_config.h"
#include "prune/target.h"

/* Fills score[dim[axis]]; *finite false when an element is NaN or infinite (the scores are then
 * meaningless). Stored integers count as what their scales make of them. One pass over the tensor;
 * FPGM holds its filters in memory and takes channels^2 * elements per channel. */
enum accel_err accel_channel_score(double *score, bool *finite, const struct accel_target *t,
                                   int axis, enum accel_score kind, uint64_t seed,
                                   struct accel_buffer *room) ACCEL_CHECKED;

#endif

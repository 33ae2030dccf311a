/* Standard operators that are known by name and arity only: nothing is inferred or pruned through
 * them, and a model that has them is read, pruned elsewhere and written all the same. Rows: name,
 * first opset, fewest and most inputs, fewest and most outputs, over all opsets. One that is
 * implemented moves to a file of its own. */
#include <limits.h>

#include "graph/op.h"

#define WALL(op_domain, op_name, first, n_min, n_max, o_min, o_max)                                \
    {                                                                                              \
        .name = (op_name), .domain = (op_domain), .since = (first), .min_in = (n_min),             \
        .max_in = (n_max), .min_out = (o_min), .max_out = (o_max),                                 \
    }
#define CORE(...)     WALL("", __VA_ARGS__)
#define ML(...)       WALL("ai.onnx.ml", __VA_ARGS__)
#define TRAINING(...) WALL("ai.onnx.preview.training", __VA_ARGS__)
#define PREVIEW(...)  WALL("ai.onnx.preview", __VA_ARGS__)

/* clang-format off: the build finds rows by lines */
const struct accel_op accel_op_image_decoder = CORE("ImageDecoder", 20, 1, 1, 1, 1);
const struct accel_op accel_op_linear_attention = CORE("LinearAttention", 27, 3, 6, 2, 2);
const struct accel_op accel_op_optional = CORE("Optional", 15, 0, 1, 1, 1);
const struct accel_op accel_op_optional_get_element = CORE("OptionalGetElement", 15, 1, 1, 1, 1);
const struct accel_op accel_op_optional_has_element = CORE("OptionalHasElement", 15, 0, 1, 1, 1);
const struct accel_op accel_op_regex_full_match = CORE("RegexFullMatch", 20, 1, 1, 1, 1);
const struct accel_op accel_op_sequence_map = CORE("SequenceMap", 17, 1, INT_MAX, 1, INT_MAX);
const struct accel_op accel_op_string_concat = CORE("StringConcat", 20, 2, 2, 1, 1);
const struct accel_op accel_op_string_normalizer = CORE("StringNormalizer", 10, 1, 1, 1, 1);
const struct accel_op accel_op_string_split = CORE("StringSplit", 20, 1, 1, 2, 2);
const struct accel_op accel_op_tf_idf_vectorizer = CORE("TfIdfVectorizer", 9, 1, 1, 1, 1);

const struct accel_op accel_op_ml_array_feature_extractor =
    ML("ArrayFeatureExtractor", 1, 2, 2, 1, 1);
const struct accel_op accel_op_ml_binarizer = ML("Binarizer", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_cast_map = ML("CastMap", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_category_mapper = ML("CategoryMapper", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_dict_vectorizer = ML("DictVectorizer", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_feature_vectorizer = ML("FeatureVectorizer", 1, 1, INT_MAX, 1, 1);
const struct accel_op accel_op_ml_imputer = ML("Imputer", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_label_encoder = ML("LabelEncoder", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_linear_classifier = ML("LinearClassifier", 1, 1, 1, 2, 2);
const struct accel_op accel_op_ml_linear_regressor = ML("LinearRegressor", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_normalizer = ML("Normalizer", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_one_hot_encoder = ML("OneHotEncoder", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_svmclassifier = ML("SVMClassifier", 1, 1, 1, 2, 2);
const struct accel_op accel_op_ml_svmregressor = ML("SVMRegressor", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_scaler = ML("Scaler", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_tree_ensemble = ML("TreeEnsemble", 5, 1, 1, 1, 1);
const struct accel_op accel_op_ml_tree_ensemble_classifier =
    ML("TreeEnsembleClassifier", 1, 1, 1, 2, 2);
const struct accel_op accel_op_ml_tree_ensemble_regressor =
    ML("TreeEnsembleRegressor", 1, 1, 1, 1, 1);
const struct accel_op accel_op_ml_zip_map = ML("ZipMap", 1, 1, 1, 1, 1);

const struct accel_op accel_op_training_adagrad = TRAINING("Adagrad", 1, 3, INT_MAX, 1, INT_MAX);
const struct accel_op accel_op_training_adam = TRAINING("Adam", 1, 3, INT_MAX, 1, INT_MAX);
const struct accel_op accel_op_training_gradient = TRAINING("Gradient", 1, 1, INT_MAX, 1, INT_MAX);
const struct accel_op accel_op_training_momentum = TRAINING("Momentum", 1, 3, INT_MAX, 1, INT_MAX);

const struct accel_op accel_op_preview_flex_attention = PREVIEW("FlexAttention", 1, 3, 3, 1, 1);

/* clang-format on */

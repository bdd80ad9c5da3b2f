/** Approximate memory of parsed values, bytes, without the characters of strings; measured in V8. */
export const CONTAINER_BYTES = 64
export const VALUE_BYTES = 16

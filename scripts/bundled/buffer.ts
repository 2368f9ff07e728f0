/** Stands in for `node:buffer` in the bundle; see ../bundle.ts. */
const buffer = process.getBuiltinModule("node:buffer");
export const { Buffer } = buffer;

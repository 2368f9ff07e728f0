/** Stands in for `node:crypto` in the bundle; see ../bundle.ts. */
const crypto = process.getBuiltinModule("node:crypto");
export const { createHash, createPrivateKey, X509Certificate } = crypto;

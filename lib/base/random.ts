/** The only source of randomness; injected so that tests can fix it. */
export interface Random {
  bytes(length: number): Uint8Array;
}

export const systemRandom: Random = {
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
};

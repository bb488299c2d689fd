/** https://github.com/bitcoin/bitcoin/blob/master/src/rpc/protocol.h */
export const codes = {
  misc: -1,
  type: -3,
  notFound: -5,
  funds: -6,
  parameter: -8,
  noWallet: -18,
  malformed: -22,
  transaction: -25,
  rejected: -26,
  alreadyMined: -27,
  warmup: -28,
  invalidRequest: -32600,
  unknownMethod: -32601,
  parse: -32700,
} as const

export class NodeError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

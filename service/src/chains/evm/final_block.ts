import type { BlockRef } from '../chain.ts'
import { decodeHeader } from './decode.ts'
import type { JsonRpc } from './json_rpc.ts'

/** https://ethereum.org/developers/docs/apis/json-rpc/#default-block: the newest block that most of those who vote have made final. */
export async function finalBlock(rpc: JsonRpc): Promise<BlockRef> {
  const { height, hash } = decodeHeader(await rpc.call('eth_getBlockByNumber', ['finalized', false]))
  return { height, hash }
}

import { integerIn, objectIn } from './replies.ts'
import type { Rpc } from './rpc.ts'

/** Rejects unless the node is of the configured network and follows it. Old nodes of the main network name none. */
export async function checkIdentity(rpc: Rpc, networkId: number): Promise<void> {
  const info = objectIn((await rpc.call('server_info')).info, 'server_info info')
  const told = info.network_id === undefined ? 0 : integerIn(info.network_id, 'server_info network_id')
  if (told !== networkId)
    throw new Error(`the XRP node is of network ${told}, configured is network ${networkId}`)
  if (info.validated_ledger === undefined)
    throw new Error('the XRP node has no validated ledger yet: it is not in sync with its network')
}

import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIPv6, type LookupFunction } from 'node:net'
import { SECOND_MS } from '../../domain/time.ts'
import { literalAddress } from '../../domain/webhooks/receiver_url.ts'
import type { WebhookCall } from '../channel.ts'
import { signedHeaders } from './sign.ts'

/** One address that does not answer must not use up the time of the others. */
const ADDRESS_MS = 2 * SECOND_MS

/**
 * A request that goes to one of these addresses and nowhere else, and says the name all the same: for SNI, for the
 * certificate, and as Host. No connection serves twice, because where it leads would not be looked at again; agents of our
 * own heed no proxy variables (NODE_USE_ENV_PROXY).
 */
export function openRequest(call: WebhookCall, url: URL, addresses: readonly string[]): ClientRequest {
  const options = {
    // The name, for the certificate; `lookup` is all that turns it into an address.
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    // For SNI: without the last dot of a name, and never an address (RFC 6066 §3). Some servers end the connection at either.
    servername: literalAddress(url.hostname) === null ? url.hostname.replace(/\.$/, '') : '',
    port: url.port,
    path: `${url.pathname}${url.search}`,
    method: 'POST',
    lookup: lookupOf(addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_MS,
    headers: {
      host: url.host,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(call.body),
      'user-agent': 'Cambist-Webhooks/1',
      ...signedHeaders(call),
    },
  }
  return url.protocol === 'https:'
    ? httpsRequest({ ...options, agent: httpsAgent })
    : httpRequest({ ...options, agent: httpAgent })
}

const httpAgent = new HttpAgent({ keepAlive: false })
const httpsAgent = new HttpsAgent({ keepAlive: false, maxCachedSessions: 0 })

/** Answers with what was looked at, whatever the name would mean by now. Node asks it for names only, not for addresses. */
function lookupOf(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
  return (_hostname, options, callback) => {
    const [first] = found
    if (options.all === true) callback(null, found)
    else callback(null, first?.address ?? '', first?.family ?? 0)
  }
}

/** Whoever lets a connection be made and then does not encrypt it has not let it be made. */
export function limitConnecting(request: ClientRequest, connectMs: number): void {
  let isConnected = false
  request.on('socket', (socket) => {
    const event = 'encrypted' in socket ? 'secureConnect' : 'connect'
    socket.once(event, () => {
      isConnected = true
    })
  })
  AbortSignal.timeout(connectMs).addEventListener('abort', () => {
    if (!isConnected) request.destroy(new Error('there was no connection in time'))
  })
}

import { CutLine, type Endpoint, type HttpRequest, jsonReply } from '../simulated/server.ts'
import { isAddress, toBase58 } from './addresses.ts'
import { type Answer, CommandError, type Params, solidView, type TronNode } from './command.ts'
import { commands, readers } from './commands.ts'

/** https://developers.tron.network/reference: GET with a query or POST with JSON, as java-tron takes both for most. */
export function tronEndpoint(node: TronNode): Endpoint {
  return {
    http: async (request) => {
      const [, api, name = ''] = /^\/(wallet|walletsolidity)\/(\w+)$/.exec(request.url.pathname) ?? []
      const known = api === 'wallet' ? commands : api === 'walletsolidity' ? readers : {}
      const command = Object.hasOwn(known, name) ? known[name] : undefined
      if (command === undefined) return jsonReply({}, 404)
      const isSolid = api === 'walletsolidity'
      try {
        const params = paramsOf(request)
        const view = isSolid ? solidView(node) : node.told()
        const answer = command({ node, view, params, isSolid })
        return jsonReply(String(params.visible) === 'true' ? showAddresses(answer) : answer)
      } catch (error) {
        if (error instanceof CutLine) throw error
        return jsonReply({ Error: `class ${nameOf(error)} : ${(error as Error).message}` })
      }
    },
  }
}

function paramsOf({ method, url, body }: HttpRequest): Params {
  if (method === 'GET' || body === '') return Object.fromEntries(url.searchParams)
  const parsed: unknown = JSON.parse(body)
  if (typeof parsed !== 'object' || parsed === null)
    throw new CommandError('org.tron.json.JSONException', 'no object')
  return parsed as Params
}

function nameOf(error: unknown): string {
  return error instanceof CommandError ? error.exception : 'java.lang.Exception'
}

/** With `visible`, addresses are told in base58. */
function showAddresses(value: unknown): Answer {
  const text = JSON.stringify(value, (name, inner) => {
    if (name === 'visible') return true
    return /address$/.test(name) && isAddress(inner) ? toBase58(inner) : inner
  })
  return JSON.parse(text) as Answer
}

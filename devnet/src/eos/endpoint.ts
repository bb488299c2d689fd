import { CutLine, type Endpoint, jsonReply } from '../simulated/server.ts'
import { type EosNode, OtherStatus, type Params } from './command.ts'
import { commands } from './commands.ts'
import { errorBody, Refusal } from './refusal.ts'

/** https://docs.antelope.io/docs/latest/api-reference: `chain_api_plugin` and `trace_api_plugin`. */
export function eosEndpoint(node: EosNode): Endpoint {
  return {
    http: async ({ url, body }) => {
      const path = url.pathname.replace(/^\/v1\//, '')
      const run = Object.hasOwn(commands, path) ? commands[path] : undefined
      if (run === undefined) return jsonReply(unknownEndpoint(), 404)
      try {
        return jsonReply(run(node, parse(body)))
      } catch (error) {
        if (error instanceof CutLine) throw error
        if (error instanceof OtherStatus) return jsonReply(error.body, error.status)
        const refusal = error instanceof Refusal ? error : new Refusal('unspecified', String(error))
        return jsonReply(errorBody(refusal), refusal.status)
      }
    },
  }
}

function parse(body: string): Params {
  return body === '' ? {} : (JSON.parse(body) as Params)
}

function unknownEndpoint(): object {
  const details = [{ message: 'Unknown Endpoint', file: 'http_plugin.cpp', line_number: 0, method: 'handle' }]
  return {
    code: 404,
    message: 'Not Found',
    error: { code: 0, name: 'exception', what: 'unspecified', details },
  }
}

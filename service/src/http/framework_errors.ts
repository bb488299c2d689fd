import type { FastifyError } from 'fastify'
import { invalidParameters, type Problem } from './errors.ts'

/**
 * What Fastify itself refuses, in the interface's words; null for anything we did not expect. `isCutOff`: the request
 * ended before all of it was read. Of any other, a line that broke was ours: to the database, to a node.
 */
export function problemOf(
  error: Partial<FastifyError> & { readonly expose?: boolean },
  isCutOff: boolean,
): Problem | null {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return { code: 'PAYLOAD_TOO_LARGE', message: 'the body is larger than the service reads' }
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return { code: 'UNSUPPORTED_MEDIA_TYPE', message: 'the Content-Type is malformed' }
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return invalidParameters([{ field: 'body', message: 'is not as long as Content-Length says' }])
    // Asked of a QUERY before Fastify says that there is no route; where there is one, the method is refused before.
    case 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE':
    case 'FST_STATIC_FORBIDDEN_PATH':
      return { code: 'NOT_FOUND', message: 'there is nothing at this path' }
    case 'FST_ERR_BAD_URL':
      return invalidParameters([{ field: 'path', message: 'is not valid percent-encoded UTF-8' }])
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return invalidParameters([{ field: 'path', message: 'is too long' }])
    case 'ECONNRESET':
    case 'ERR_STREAM_PREMATURE_CLOSE':
      return isCutOff ? invalidParameters([{ field: 'body', message: 'did not arrive completely' }]) : null
    default:
      // Of the reference's files only: a part or a version that there is not.
      return error.expose === true
        ? invalidParameters([{ field: 'request', message: 'asks for a file in a way that it is not served' }])
        : null
  }
}

/** What Node's parser refuses before there is a request. */
export function malformedHttpProblem(error: NodeJS.ErrnoException): Problem {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return invalidParameters([{ field: 'headers', message: 'are larger than the service reads' }])
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { code: 'PAYLOAD_TOO_LARGE', message: 'the chunk extensions are larger than the service reads' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { code: 'REQUEST_TIMEOUT', message: 'the request did not arrive in time' }
    default:
      return invalidParameters([{ field: 'request', message: 'is not well-formed HTTP/1.1' }])
  }
}

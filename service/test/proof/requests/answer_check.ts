import { problems } from '../../../src/http/errors.ts'
import type { Answer } from '../../../src/http/testing/answer.ts'
import type { Conformity } from '../../../src/http/testing/conformity.ts'
import type { Weather } from './generated_case.ts'
import type { Case } from './request.ts'

/**
 * What is wrong with an answer; null when it is as it has to be. That a price or a chain is not to be had may be said
 * only while they are driven mad.
 */
export function findFault(
  { expected, request }: Case,
  answer: Answer,
  conforms: Conformity,
  weather: Weather,
): string | null {
  const { status, json, text } = answer
  const isUnavailable = status === 503 && weather === 'wild'
  if (status >= 500 && !isUnavailable) return `a failure of ours: ${status} ${text}`
  const isSuccess = status < 400
  if (expected === 'success' && !isSuccess) return `it is right and was refused: ${status} ${text}`
  if (expected === 'refusal' && isSuccess) return `it is wrong and was done: ${status} ${text.slice(0, 500)}`
  if (!isSuccess && request.method !== 'HEAD' && !Object.hasOwn(problems, json?.error_code)) {
    return `the refusal has no error code of the table: ${status} ${text}`
  }
  try {
    conforms(request.method, request.target, answer)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

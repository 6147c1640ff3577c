import { describe, expect, it } from 'vitest'
import { isFused, paceAfter, spanBound } from '../../lib/epoch/split.ts'
import type { Manifest, Pace, Plan } from '../../lib/model/manifest.ts'
import type { TaskResult } from '../../lib/model/results.ts'
import type { EpochSettings } from '../../lib/model/settings.ts'
import { defaultSettings } from '../../lib/model/settings.ts'
import type { Compiled } from '../../lib/stream/compiled.ts'

const job = (stages: number, shards: number, epoch: Partial<EpochSettings> = {}) =>
  ({
    build: 'b',
    topology: { stages },
    settings: { ...defaultSettings, shards, epoch: { ...defaultSettings.epoch, ...epoch } },
  }) as unknown as Compiled

const parent = (pace?: Pace, build = 'b') => ({ build, ...(pace ? { pace } : {}) }) as unknown as Manifest

const planned = (span: number, stageTasks: readonly number[]) =>
  ({
    build: 'b',
    fused: stageTasks.length === 1,
    stageTasks,
    ranges: [{ start: '9007199254740993', end: String(9007199254740993n + BigInt(span)) }],
  }) as unknown as Plan

const took = (stage: number, tookMs?: number) => ({ stage, tookMs }) as unknown as TaskResult

describe('split', () => {
  it('fuses small epochs, and all epochs of one shard', () => {
    expect(isFused(job(2, 4), parent(), 50_000)).toBe(true)
    expect(isFused(job(2, 1), parent(), 500_000)).toBe(true)
  })

  it('splits large epochs that need no shuffle, whatever they cost', () => {
    expect(isFused(job(1, 2), parent({ fusedUs: 1, splitUs: null }), 500_000)).toBe(false)
    expect(spanBound(job(1, 2), parent())).toBe(500_000)
  })

  it('keeps an epoch small while nobody knows what its records cost', () => {
    expect(spanBound(job(2, 2), parent())).toBe(50_000)
    expect(spanBound(job(2, 2), parent({ fusedUs: 3, splitUs: null }, 'another build'))).toBe(50_000)
    expect(spanBound(job(2, 2), parent({ fusedUs: 3, splitUs: null }))).toBe(500_000)
    expect(spanBound(job(2, 1), parent())).toBe(500_000)
  })

  it('fuses what is cheap or soon done, tries the shards for the rest, and keeps what is faster', () => {
    expect(isFused(job(2, 2), parent({ fusedUs: 9, splitUs: null }), 500_000)).toBe(true)
    expect(isFused(job(2, 2), parent({ fusedUs: 11, splitUs: null }), 90_000)).toBe(true)
    expect(isFused(job(2, 2), parent({ fusedUs: 11, splitUs: null }), 91_000)).toBe(false)
    expect(isFused(job(2, 2), parent({ fusedUs: 11, splitUs: 10 }), 500_000)).toBe(false)
    expect(isFused(job(2, 2), parent({ fusedUs: 11, splitUs: 11 }), 500_000)).toBe(true)
  })

  it('goes by the span alone when it is told so', () => {
    for (const told of [{ fuseMs: 0 }, { fuseSpanMax: 0 }]) {
      expect(isFused(job(2, 2, told), parent({ fusedUs: 1, splitUs: null }), 500_000)).toBe(false)
      expect(spanBound(job(2, 2, told), parent())).toBe(500_000)
    }
    expect(isFused(job(2, 2, { fuseSpanMax: 0 }), parent(), 0)).toBe(false)
  })

  it('learns from the slowest task of each stage, half of it from the newest epoch', () => {
    const results = [took(0, 100), took(0, 300), took(1, 50), took(1, 200)]
    expect(paceAfter(job(2, 2), planned(100_000, [2, 2]), parent({ fusedUs: 4, splitUs: null }), results)).toEqual({
      pace: { fusedUs: 4, splitUs: 5 },
    })
    expect(paceAfter(job(2, 2), planned(100_000, [1]), parent({ fusedUs: 4, splitUs: 5 }), [took(0, 200)])).toEqual({
      pace: { fusedUs: 3, splitUs: 5 },
    })
  })

  it('learns nothing from small epochs, nor from results that do not tell', () => {
    expect(paceAfter(job(2, 2), planned(24_999, [1]), parent(), [took(0, 200)])).toEqual({})
    expect(paceAfter(job(2, 2), planned(0, [1]), parent(), [took(0, 200)])).toEqual({})
    expect(paceAfter(job(2, 2), planned(50_000, [1]), parent(), [took(0)])).toEqual({})
  })
})
